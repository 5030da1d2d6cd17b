--- Forwards the errors of other servers and linters, by which the server knows what an edit broke.

local config = require("mercury.config")
local mercury_client = require("mercury.client")

local api = vim.api
local ERROR = vim.diagnostic.severity.ERROR

local M = {}

local METHOD = "mercury/didChangeDiagnostics"

--- Quiet time in milliseconds after a report before it is forwarded. Neovim tells the server of a change after 150, and
--- what is found in the new text must not come first.
local PAUSE_MS = 250

--- Most errors of a buffer that are forwarded.
local MOST = 100

--- How often something was reported, by buffer.
---@type table<integer, integer?>
local reports = {}

---@param bufnr integer
---@param row integer from 0
---@param col integer bytes
---@param encoding string
---@return lsp.Position
local function position(bufnr, row, col, encoding)
  local line = api.nvim_buf_get_lines(bufnr, row, row + 1, false)[1] or ""
  ---@diagnostic disable-next-line: param-type-mismatch -- an encoding of the client
  return { line = row, character = vim.str_utfindex(line, encoding, math.min(col, #line), false) }
end

--- Where errors are, without their messages.
---@param bufnr integer
---@param encoding string
---@return table[]
local function found(bufnr, encoding)
  local list = {}
  for _, each in ipairs(vim.diagnostic.get(bufnr, { severity = ERROR })) do
    if #list == MOST then
      return list
    end
    local first = position(bufnr, each.lnum, each.col, encoding)
    local last = position(bufnr, each.end_lnum or each.lnum, each.end_col or each.col, encoding)
    table.insert(list, { range = { start = first, ["end"] = last }, severity = ERROR })
  end
  return list
end

---@param client vim.lsp.Client
---@return boolean
local function takes_diagnostics(client)
  return vim.tbl_get(client.server_capabilities or {}, "experimental", "mercury", "diagnostics") == true
end

---@param bufnr integer
local function forward(bufnr)
  local client = mercury_client.get(bufnr)
  if not client or not client.initialized or not takes_diagnostics(client) then
    return
  end
  local document = { uri = vim.uri_from_bufnr(bufnr), version = vim.lsp.util.buf_versions[bufnr] }
  ---@diagnostic disable-next-line: param-type-mismatch -- a notification of Mercury's own
  client:notify(METHOD, { textDocument = document, diagnostics = found(bufnr, client.offset_encoding) })
end

--- Others have reported something of a buffer, perhaps that nothing is wrong. If its text changes meanwhile they will
--- report again.
---@param bufnr integer
local function changed(bufnr)
  if not config.current.next_edits or not api.nvim_buf_is_loaded(bufnr) then
    return
  end
  local mine, tick = (reports[bufnr] or 0) + 1, api.nvim_buf_get_changedtick(bufnr)
  reports[bufnr] = mine
  vim.defer_fn(function()
    local is_last = reports[bufnr] == mine and api.nvim_buf_is_loaded(bufnr)
    if is_last and api.nvim_buf_get_changedtick(bufnr) == tick then
      forward(bufnr)
    end
  end, PAUSE_MS)
end

--- The server has just been given a buffer, of which something may have been reported before.
---@param bufnr integer
function M.attached(bufnr)
  if reports[bufnr] or #vim.diagnostic.get(bufnr) > 0 then
    changed(bufnr)
  end
end

--- Forward what is reported from now on.
---@param group integer of autocommands
---@param is_enabled fun(): boolean whether Mercury is switched on
function M.watch(group, is_enabled)
  api.nvim_create_autocmd("DiagnosticChanged", {
    group = group,
    callback = function(args)
      if is_enabled() then
        changed(args.buf)
      end
    end,
  })
  api.nvim_create_autocmd("BufUnload", {
    group = group,
    callback = function(args)
      reports[args.buf] = nil
    end,
  })
end

return M
