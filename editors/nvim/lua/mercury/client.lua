local config = require("mercury.config")
local status = require("mercury.status")

local M = { name = "mercury", method = "textDocument/inlineCompletion" }

--- One model in memory is enough: every project shares the running server.
---@param client vim.lsp.Client
---@param wanted vim.lsp.ClientConfig
local function reuse(client, wanted)
  return client.name == wanted.name and not client:is_stopped()
end

---@return lsp.ClientCapabilities
local function capabilities()
  return {
    textDocument = { inlineCompletion = { dynamicRegistration = false } },
    experimental = { mercury = { confidence = config.current.dim_unsure, denoising = config.current.denoising } },
  }
end

--- Define the `mercury` configuration and let Neovim start it for every buffer that wants it.
function M.start()
  vim.lsp.config(M.name, {
    cmd = config.current.cmd,
    capabilities = capabilities(),
    settings = { [M.name] = config.current.settings },
    handlers = {
      didChangeStatus = function(_, said)
        status.note(said)
      end,
      ["$/progress"] = require("mercury.denoising").on_progress,
    },
    on_init = status.started,
    on_exit = vim.schedule_wrap(status.ended),
    reuse_client = reuse,
    root_dir = function(bufnr, on_dir)
      if config.wants(bufnr) then
        on_dir(M.root(bufnr))
      end
    end,
  })
  M.attach_wanting()
end

--- The `mercury` configuration.
---@return vim.lsp.Config
function M.configuration()
  local known = vim.lsp.config --[[@as table<string, vim.lsp.Config>]]
  return known[M.name]
end

--- What keeps the server from being started.
---@return string?
function M.problem()
  local cmd = M.configuration().cmd
  if type(cmd) == "table" and vim.fn.executable(cmd[1]) == 0 then
    return ("%s cannot be run; install mercury-lsp, or set the option `cmd` to its path"):format(cmd[1])
  end
end

--- Warn once that nothing will be suggested in a buffer that wants it; Neovim skips a missing server silently.
---@param bufnr integer
function M.tell_problem(bufnr)
  if vim.bo[bufnr].buftype == "" and config.wants(bufnr) and M.problem() then
    status.word = "error"
    local cmd = M.configuration().cmd --[[@as string[] ]]
    vim.notify_once(("mercury: %s cannot be run; see :checkhealth mercury"):format(cmd[1]), vim.log.levels.WARN)
  end
end

--- Why a buffer has no server.
---@param bufnr integer
---@return string
function M.why_absent(bufnr)
  local filetype = vim.bo[bufnr].filetype
  if vim.bo[bufnr].buftype ~= "" then
    return "the buffer is no file"
  elseif not config.wants(bufnr) then
    return vim.b[bufnr].mercury == nil and ("the filetype %q is switched off"):format(filetype) or "b:mercury says no"
  elseif filetype == "" then
    return "the buffer has no filetype"
  end
  return M.problem()
    or status.exit_code and ("the server ended with exit code %d"):format(status.exit_code)
    or "the server is not running"
end

--- Attach to the loaded buffers that want it and are not attached yet, starting the server if need be.
function M.attach_wanting()
  vim.lsp.enable(M.name)
end

---@param bufnr integer
---@return string?
function M.root(bufnr)
  return vim.fs.root(bufnr, { ".git", ".hg" })
end

--- Tell a shared server about the project of a buffer that it did not start with.
---@param client vim.lsp.Client
---@param bufnr integer
function M.add_project(client, bufnr)
  local root = M.root(bufnr)
  if not root then
    return
  end
  local folder = { uri = vim.uri_from_fname(root), name = root }
  client.workspace_folders = client.workspace_folders or {}
  for _, known in ipairs(client.workspace_folders) do
    if known.uri == folder.uri then
      return
    end
  end
  table.insert(client.workspace_folders, folder)
  client:notify("workspace/didChangeWorkspaceFolders", { event = { added = { folder }, removed = {} } })
end

--- Have the server make the last change in one more place; it edits the buffer and moves the cursor.
---@param bufnr integer
---@return boolean asked false without a server
function M.next_edit(bufnr)
  local client = M.get(bufnr)
  if not client then
    return false
  end
  local document = vim.lsp.util.make_text_document_params(bufnr)
  local command = { command = "mercury.nextEdit", arguments = { { textDocument = document } } }
  local asked = client:request("workspace/executeCommand", command, nil, bufnr)
  return asked
end

---@param bufnr? integer
---@return vim.lsp.Client?
function M.get(bufnr)
  return vim.lsp.get_clients({ name = M.name, bufnr = bufnr })[1]
end

return M
