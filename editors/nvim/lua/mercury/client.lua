local config = require("mercury.config")

local M = { name = "mercury", method = "textDocument/inlineCompletion" }

--- What the server last said of itself (`didChangeStatus`).
---@type { kind?: string, message?: string }?
M.server_status = nil

--- One model in memory is enough: every project shares the running server.
---@param client vim.lsp.Client
---@param wanted vim.lsp.ClientConfig
local function reuse(client, wanted)
  return client.name == wanted.name and not client:is_stopped()
end

--- Define the `mercury` configuration and let Neovim start it for every buffer that wants it.
function M.start()
  vim.lsp.config(M.name, {
    cmd = config.current.cmd,
    capabilities = { textDocument = { inlineCompletion = { dynamicRegistration = false } } },
    settings = config.current.settings,
    handlers = {
      didChangeStatus = function(_, status)
        M.server_status = status
      end,
    },
    reuse_client = reuse,
    root_dir = function(bufnr, on_dir)
      if config.wants(bufnr) then
        on_dir(M.root(bufnr))
      end
    end,
  })
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

---@param bufnr? integer
---@return vim.lsp.Client?
function M.get(bufnr)
  return vim.lsp.get_clients({ name = M.name, bufnr = bufnr })[1]
end

return M
