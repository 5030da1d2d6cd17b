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

return M
