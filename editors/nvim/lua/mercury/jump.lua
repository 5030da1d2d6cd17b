--- Takes the user to a place in a buffer, and leaves a mark in the jump list to come back by.

local api = vim.api

local M = {}

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
