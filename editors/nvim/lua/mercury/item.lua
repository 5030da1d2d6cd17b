--- One item of the server's answer: what it inserts, and what of it is still to be inserted.

local api = vim.api

local M = {}

---@class mercury.Item
---@field row integer the line of the item's range, 0-based
---@field head string that line up to the range
---@field after string what stood after the cursor; unchanged while the user types the suggestion
---@field replaced string the part of `after` which the range covers
---@field text string
---@field sure integer bytes of the text before the part that is more likely wrong than right
---@field command? lsp.Command

---@param bufnr integer
---@param row integer
---@return string?
local function line_at(bufnr, row)
  return api.nvim_buf_get_lines(bufnr, row, row + 1, false)[1]
end

---@param text string
---@return string
local function with_line_feeds(text)
  return (text:gsub("\r\n?", "\n"))
end

---@param raw lsp.InlineCompletionItem
---@param text string what it inserts
---@param encoding "utf-8"|"utf-16"|"utf-32"
---@return integer
local function sure_bytes(raw, text, encoding)
  local unsure_from = vim.tbl_get(raw, "mercury", "unsureFrom")
  if type(unsure_from) ~= "number" then
    return #text
  end
  return #with_line_feeds(text:sub(1, vim.str_byteindex(text, encoding, unsure_from --[[@as integer]], false)))
end

--- Translate an item of the server; nil when it cannot be shown as text at the cursor.
---@param bufnr integer
---@param raw lsp.InlineCompletionItem
---@param place mercury.Place
---@param encoding "utf-8"|"utf-16"|"utf-32"
---@return mercury.Item?
function M.read(bufnr, raw, place, encoding)
  local line = assert(line_at(bufnr, place.row))
  local first, last = place.col, place.col
  if type(raw.range) == "table" then
    if raw.range.start.line ~= place.row or raw.range["end"].line ~= place.row then
      return
    end
    first = vim.str_byteindex(line, encoding, raw.range.start.character, false)
    last = vim.str_byteindex(line, encoding, raw.range["end"].character, false)
  end
  local text = raw.insertText
  local replaced = line:sub(place.col + 1, last)
  if type(text) ~= "string" or first > place.col or last < place.col or replaced:find("\r") then
    return
  end
  return {
    row = place.row,
    head = line:sub(1, first),
    after = line:sub(place.col + 1),
    replaced = replaced,
    text = with_line_feeds(text),
    sure = sure_bytes(raw, text, encoding),
    command = type(raw.command) == "table" and raw.command or nil,
  }
end

--- Its first line alone, which is not the whole text that its command is for.
---@param item mercury.Item
---@return mercury.Item
function M.first_line(item)
  local line = item.text:match("^[^\n]*")
  if line == item.text then
    return item
  end
  local only = vim.tbl_extend("force", item, { text = line }) --[[@as mercury.Item]]
  only.command = nil
  return only
end

--- What is still to be inserted of an item; nil when the buffer no longer leads to it.
---@param bufnr integer
---@param item mercury.Item
---@param place mercury.Place
---@return string?
function M.rest(bufnr, item, place)
  if place.row < item.row then
    return
  end
  local first, line = line_at(bufnr, item.row), line_at(bufnr, place.row)
  if not first or not line or not vim.startswith(first, item.head) then
    return
  end
  if line:sub(place.col + 1) ~= item.after or (place.row == item.row and place.col < #item.head) then
    return
  end
  local typed = api.nvim_buf_get_text(bufnr, item.row, #item.head, place.row, place.col, {})
  local prefix = table.concat(typed, "\n")
  if vim.startswith(item.text, prefix) and #item.text > #prefix then
    return item.text:sub(#prefix + 1)
  end
end

--- The rest of an item as it is drawn.
---@param item mercury.Item
---@param rest string
---@param dim boolean whether the part that is more likely wrong than right looks different
---@return mercury.Chunk[]
function M.chunks(item, rest, dim)
  local sure = dim and math.max(0, item.sure - (#item.text - #rest)) or #rest
  return { { rest:sub(1, sure), "MercuryGhost" }, { rest:sub(sure + 1), "MercuryUnsure" } }
end

return M
