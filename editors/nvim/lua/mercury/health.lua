local M = {}

local function check_neovim()
  if vim.fn.has("nvim-0.11") == 0 then
    vim.health.error("Neovim 0.11 or newer is needed")
    return
  end
  local builtin = vim.lsp.inline_completion ~= nil
  vim.health.ok(builtin and "vim.lsp.inline_completion is there" or "ghost text is drawn by this plugin")
end

local function check_server()
  local cmd = vim.lsp.config.mercury and vim.lsp.config.mercury.cmd
  if not cmd then
    vim.health.error("mercury is not set up", "call require('mercury').setup()")
  elseif type(cmd) == "table" and vim.fn.executable(cmd[1]) == 0 then
    vim.health.error(("%s cannot be run"):format(cmd[1]), "install mercury-lsp, or set the option `cmd` to its path")
  else
    vim.health.ok("the server's command is " .. vim.inspect(cmd))
  end
end

local function check_client()
  local mercury_client = require("mercury.client")
  local client = mercury_client.get()
  if not client then
    vim.health.warn("the server is not running", "open a file, then run :checkhealth mercury again")
  elseif not client:supports_method(mercury_client.method) then
    vim.health.error("the server does not offer " .. mercury_client.method)
  else
    vim.health.ok(("the server runs (client %d, %s positions)"):format(client.id, client.offset_encoding))
  end
end

function M.check()
  vim.health.start("mercury")
  check_neovim()
  check_server()
  check_client()
end

return M
