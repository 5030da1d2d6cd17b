--- Takes the user to a place in a buffer, and leaves a mark in the jump list to come back by.

local api = vim.api

local M = {}

--- Where a jump put the cursor last: buffer, its version, row and column.
---@type string?
local landed

local function here()
  local bufnr, cursor = api.nvim_get_current_buf(), api.nvim_win_get_cursor(0)
  return ("%d:%d:%d:%d"):format(bufnr, api.nvim_buf_get_changedtick(bufnr), cursor[1], cursor[2])
end

--- Put the cursor at a place: in the window that shows its buffer, or else in this one.
---@param bufnr integer
---@param row integer from 0
---@param col integer
function M.to(bufnr, row, col)
  if api.nvim_get_current_buf() ~= bufnr then
    local window = vim.fn.bufwinid(bufnr)
    if window > 0 then
      api.nvim_set_current_win(window)
    else
      vim.cmd("normal! m'")
      vim.bo[bufnr].buflisted = true
      api.nvim_win_set_buf(0, bufnr)
    end
  end
  api.nvim_win_set_cursor(0, { row + 1, col })
  vim.cmd("silent! .foldopen!")
  landed = here()
  if vim.fn.mode() == "i" then
    -- Neovim keeps for undo only lines to which insert mode itself went; this has it keep what is typed here, too.
    api.nvim_feedkeys(vim.keycode("<C-g>u"), "in", false)
  end
end

--- Whether the user inserts in the indentation of a line, to which no jump took them.
---@return boolean
function M.is_indenting()
  local before = api.nvim_get_current_line():sub(1, api.nvim_win_get_cursor(0)[2])
  return vim.fn.mode() == "i" and not before:find("%S") and landed ~= here()
end

--- The same, with a mark where the cursor is now.
---@param bufnr integer
---@param row integer from 0
---@param col integer
function M.from_here(bufnr, row, col)
  vim.cmd("normal! m'")
  M.to(bufnr, row, col)
end

--- Handle `window/showDocument`. Neovim's own handler leaves the cursor of insert mode before a line's last character.
---@param err? lsp.ResponseError
---@param params lsp.ShowDocumentParams
---@param ctx lsp.HandlerContext
function M.show_document(err, params, ctx)
  local client = assert(vim.lsp.get_client_by_id(ctx.client_id))
  local bufnr = require("mercury.edit").buffer_of(client, params.uri)
  if not bufnr or not params.selection then
    return vim.lsp.handlers["window/showDocument"](err, params, ctx)
  end
  local at = params.selection.start
  local row = math.min(at.line, api.nvim_buf_line_count(bufnr) - 1)
  local line = api.nvim_buf_get_lines(bufnr, row, row + 1, true)[1]
  local encoding = client.offset_encoding --[[@as "utf-16"]]
  M.from_here(bufnr, row, vim.str_byteindex(line, encoding, at.character, false))
  return { success = true }
end

return M
