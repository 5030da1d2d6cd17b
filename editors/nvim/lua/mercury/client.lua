local config = require("mercury.config")
local notes = require("mercury.notes")
local process = require("mercury.process")
local status = require("mercury.status")

local M = { name = "mercury", method = "textDocument/inlineCompletion" }

--- How long `:Mercury status` waits for the server.
local SAYS_IN_MS = 1000

--- Servers that hang and were given up, by client.
---@type table<integer, true?>
local left = {}

--- One model in memory is enough: every project shares the running server.
---@param client vim.lsp.Client
---@param wanted vim.lsp.ClientConfig
local function reuse(client, wanted)
  return client.name == wanted.name and not client:is_stopped() and not left[client.id]
end

---@param bufnr integer
---@return boolean
local function is_unnamed(bufnr)
  return vim.api.nvim_buf_get_name(bufnr) == ""
end

--- Buffers without a name have the same URI: the server gets the one that the user is in.
---@param client vim.lsp.Client?
---@param bufnr integer the one to serve
local function leave_other_unnamed(client, bufnr)
  for other in pairs(client and is_unnamed(bufnr) and client.attached_buffers or {}) do
    if client and other ~= bufnr and is_unnamed(other) then
      vim.lsp.buf_detach_client(other, client.id)
    end
  end
end

---@return lsp.ClientCapabilities
local function capabilities()
  return {
    textDocument = { inlineCompletion = { dynamicRegistration = false } },
    experimental = {
      mercury = {
        confidence = config.current.dim_unsure,
        denoising = config.current.denoising,
        editsElsewhere = config.current.next_edits,
        offers = true,
        subtle = true,
      },
    },
  }
end

--- Define the `mercury` configuration and let Neovim start it for every buffer that wants it.
function M.start()
  vim.lsp.config(M.name, {
    cmd = process.spawn,
    capabilities = capabilities(),
    settings = { [M.name] = config.current.settings },
    handlers = {
      didChangeStatus = function(_, said)
        status.note(said)
        require("mercury.sign").follow(status.word, said.message or "")
      end,
      ["mercury/offerModel"] = function(_, offer)
        require("mercury.offer").ask(offer)
      end,
      ["window/showDocument"] = require("mercury.jump").show_document,
      ["window/showMessage"] = function(_, said)
        notes.show(said)
      end,
      ["$/progress"] = require("mercury.denoising").on_progress,
    },
    on_init = status.started,
    on_exit = vim.schedule_wrap(function(code)
      if M.configuration().cmd ~= process.spawn then
        status.ended(code)
      end
    end),
    reuse_client = reuse,
    root_dir = function(bufnr, on_dir)
      if not config.wants(bufnr) or M.problem() then
        return
      elseif not is_unnamed(bufnr) then
        on_dir(M.root(bufnr))
        return
      end
      vim.schedule(function() -- for now each buffer is the current one, where Neovim goes through all of them
        if bufnr == vim.api.nvim_get_current_buf() then
          leave_other_unnamed(M.get(), bufnr)
          on_dir(M.root(bufnr))
        end
      end)
    end,
  })
  process.start = M.attach_wanting
  M.attach_wanting()
end

--- End the server and start a new one, which gets all documents.
function M.restart()
  process.restart(vim.lsp.get_clients({ name = M.name }), function(client)
    left[client.id] = true
    for bufnr in pairs(client.attached_buffers) do
      vim.lsp.buf_detach_client(bufnr, client.id)
    end
  end)
end

--- The `mercury` configuration.
---@return vim.lsp.Config
function M.configuration()
  local known = vim.lsp.config --[[@as table<string, vim.lsp.Config>]]
  return known[M.name]
end

--- How the server is started: by the option `cmd`, or what somebody put into the `mercury` configuration.
---@return string[]|function
function M.command()
  local cmd = M.configuration().cmd --[[@as string[]|function]]
  return cmd == process.spawn and config.current.cmd or cmd
end

--- What keeps the server from being started.
---@return string?
function M.problem()
  local cmd = M.command()
  if type(cmd) == "table" and vim.fn.executable(cmd[1]) == 0 then
    return ("%s cannot be run; install mercury-lsp, or set the option `cmd` to its path"):format(cmd[1])
  end
end

--- Warn once that nothing will be suggested in a buffer that wants it; Neovim skips a missing server silently.
---@param bufnr integer
function M.tell_problem(bufnr)
  if vim.bo[bufnr].buftype == "" and config.wants(bufnr) and M.problem() then
    status.word = "error"
    local cmd = M.command() --[[@as string[] ]]
    notes.tell_once(("mercury: %s cannot be run; see :checkhealth mercury"):format(cmd[1]), vim.log.levels.WARN)
  end
end

--- Serve the buffer that the user entered, if it has no name and another one was served.
---@param bufnr integer
function M.enter(bufnr)
  local client = M.get()
  local is_new = client and is_unnamed(bufnr) and not client.attached_buffers[bufnr]
  if client and is_new and vim.bo[bufnr].buftype == "" and vim.bo[bufnr].filetype ~= "" and config.wants(bufnr) then
    leave_other_unnamed(client, bufnr)
    vim.lsp.buf_attach_client(bufnr, client.id)
  end
end

--- The clients of buffers whose document is closed to be opened again, by buffer.
---@type table<integer, integer?>
local reopening = {}

--- The filetypes as which documents were opened, by buffer.
---@type table<integer, string?>
local opened_as = {}

---@param client vim.lsp.Client
---@param bufnr integer
local function close(client, bufnr)
  reopening[bufnr] = client.id
  vim.lsp.buf_detach_client(bufnr, client.id)
end

--- Open a document again that was closed.
---@param bufnr integer
function M.reopen(bufnr)
  local client = vim.lsp.get_client_by_id(reopening[bufnr] or 0)
  reopening[bufnr] = nil
  if client and not client:is_stopped() and config.wants(bufnr) then
    leave_other_unnamed(client, bufnr)
    vim.lsp.buf_attach_client(bufnr, client.id)
  end
end

--- Close the document of a buffer that gets another name. |:write| with a name does not say so of a buffer without one:
--- it reports that one as wiped out and a new one, and the autocommands of the buffer are gone.
---@param bufnr integer
---@param event string
function M.leave_name(bufnr, event)
  local client = M.get(bufnr)
  if client and (event == "BufFilePre" or is_unnamed(bufnr)) then
    close(client, bufnr)
  end
end

--- Open a document again that was opened as another language.
---@param bufnr integer
function M.take_language(bufnr)
  local client = M.get(bufnr)
  if client and opened_as[bufnr] ~= vim.bo[bufnr].filetype then
    close(client, bufnr)
    M.reopen(bufnr)
  end
end

--- Say once why nothing is suggested in a new buffer.
---@param bufnr integer
function M.tell_no_filetype(bufnr)
  if is_unnamed(bufnr) and vim.bo[bufnr].buftype == "" and vim.bo[bufnr].filetype == "" and config.wants(bufnr) then
    notes.tell_once("mercury: suggestions need a filetype, as by :setfiletype python", vim.log.levels.INFO)
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
local function add_project(client, bufnr)
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

--- A buffer's document was opened.
---@param client vim.lsp.Client
---@param bufnr integer
function M.attached(client, bufnr)
  opened_as[bufnr] = vim.bo[bufnr].filetype
  add_project(client, bufnr)
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
  return notes.run(client, bufnr, "mercury.nextEdit", { { textDocument = document } })
end

--- Have the server say why nothing is shown in a buffer.
---@param bufnr integer
---@return boolean asked false without a server
function M.explain(bufnr)
  local client = M.get(bufnr)
  local document = vim.lsp.util.make_text_document_params(bufnr)
  return client ~= nil and notes.run(client, bufnr, "mercury.explain", { { textDocument = document } })
end

--- Why the server suggests nothing in a buffer, whatever is asked.
---@param client vim.lsp.Client
---@param bufnr integer
---@return string? why nil if it suggests, or does not say
function M.why_silent(client, bufnr)
  local document = vim.lsp.util.make_text_document_params(bufnr)
  local asked, answer = pcall(client.request_sync, client, "mercury/status", { textDocument = document }, SAYS_IN_MS)
  local said = asked and answer and answer.result
  return said and said.suggests == false and said.why or nil
end

---@param bufnr? integer
---@return vim.lsp.Client?
function M.get(bufnr)
  for _, client in ipairs(vim.lsp.get_clients({ name = M.name, bufnr = bufnr })) do
    if not left[client.id] then
      return client
    end
  end
end

return M
