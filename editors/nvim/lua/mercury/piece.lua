local M = {}

---@alias mercury.Piece "all"|"word"|"line"

--- The part of a suggestion that one accept takes; never empty while `rest` is not.
---@param rest string
---@param piece mercury.Piece
---@return string
function M.first(rest, piece)
  if piece == "word" then
    -- Bytes from \128 on belong to letters outside ASCII; a word keeps the blanks in front of it.
    return rest:match("^%s*[%w_\128-\255]+") or rest:match("^%s*[^%w_%s\128-\255]+") or rest
  elseif piece == "line" then
    return rest:match("^\n*[^\n]+") or rest
  end
  return rest
end

--- Put text at the cursor over the next `over` bytes of its line and leave the cursor after it. It is pasted, for `.`
--- repeats a paste with what was typed around it, and does not indent, abbreviate or break lines in it.
---@param text string
---@param over integer
function M.put(text, over)
  vim.api.nvim_paste(text, false, -1)
  local cursor = vim.api.nvim_win_get_cursor(0)
  local row, col = cursor[1], cursor[2]
  vim.api.nvim_buf_set_text(0, row - 1, col, row - 1, col + over, {})
end

return M
