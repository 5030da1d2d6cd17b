local M = {}

---@alias mercury.Piece "all"|"word"|"line"

--- The sort of a character as |w| tells them apart: blanks are 0, marks 1; letters of one script have the same.
---@param char string
---@return integer
local function sort_of(char)
  if #char > 1 then
    return vim.fn.charclass(char) --[[@as integer]]
  end
  return char:find("%s") and 0 or char:find("[%w_]") and 2 or 1
end

--- The first word, or marks in a row, with the blanks in front of it.
---@param text string
---@return string
local function first_word(text)
  local word, sort = "", 0
  for _, char in ipairs(vim.fn.split(text, "\\zs")) do
    local own = sort_of(char)
    if sort ~= 0 and own ~= sort then
      break
    end
    word, sort = word .. char, own
  end
  return word
end

--- The part of a suggestion that one accept takes; never empty while `rest` is not.
---@param rest string
---@param piece mercury.Piece
---@return string
function M.first(rest, piece)
  if piece == "word" then
    return first_word(rest)
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
