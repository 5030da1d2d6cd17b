--- One next edit: whole lines of a version of a buffer, and the spans that change in them.

local spans = require("mercury.spans")

local api = vim.api

local M = {}

---@class mercury.Renaming how far a renaming is
---@field label string
---@field remaining integer
---@field applyAll { command: string, arguments: table } the command that finishes it

---@class mercury.NextEdit
---@field bufnr integer
---@field tick integer the buffer's version
---@field row integer its first line, from 0
---@field old string its lines
---@field text string what they become
---@field spans mercury.Span[]
---@field id? string
---@field renaming? mercury.Renaming

---@param edit mercury.NextEdit without spans
---@return mercury.NextEdit? edit with them; nil if it changes nothing
local function differing(edit)
  edit.spans = spans.between(edit.old, edit.text)
  return #edit.spans > 0 and edit or nil
end

---@param client vim.lsp.Client
---@param uri string
---@return integer? bufnr nil if the client has no buffer of that name
function M.buffer_of(client, uri)
  for bufnr in pairs(client.attached_buffers) do
    if vim.uri_from_bufnr(bufnr) == uri then
      return bufnr
    end
  end
end

--- The server's edit; nil if it is for another text than the buffer's.
---@param client vim.lsp.Client
---@param item table
---@return mercury.NextEdit?
function M.read(client, item)
  local version = item.textDocument.version
  local bufnr = M.buffer_of(client, item.textDocument.uri)
  if not bufnr or version and version ~= vim.lsp.util.buf_versions[bufnr] then
    return
  end
  local encoding = client.offset_encoding --[[@as "utf-16"]]
  local from, to = item.range.start, item.range["end"]
  local last = api.nvim_buf_line_count(bufnr) - 1
  local text = item.text:gsub("\r\n?", "\n")
  if from.line > last then
    from = { line = last, character = math.huge }
    text = "\n" .. text
  end
  if to.line > last then
    to = { line = last, character = math.huge }
    text = text:gsub("\n$", "")
  end
  local lines = api.nvim_buf_get_lines(bufnr, from.line, to.line + 1, false)
  local function byte(line, character)
    return character == math.huge and #line or vim.str_byteindex(line, encoding, character, false)
  end
  local old = table.concat(lines, "\n")
  if #lines == 0 or old:find("\r") then -- the server does not know of carriage returns
    return
  end
  local head = lines[1]:sub(1, byte(lines[1], from.character))
  local tail = lines[#lines]:sub(byte(lines[#lines], to.character) + 1)
  return differing({
    bufnr = bufnr,
    tick = api.nvim_buf_get_changedtick(bufnr),
    row = from.line,
    old = old,
    text = head .. text .. tail,
    spans = {},
    id = vim.tbl_get(item, "command", "arguments", 1),
    renaming = item.mercury,
  })
end

--- Whether its buffer still has the text that it was made for, and may be changed.
---@param edit mercury.NextEdit
---@return boolean
function M.fits(edit)
  local bufnr = edit.bufnr
  return api.nvim_buf_is_loaded(bufnr) and api.nvim_buf_get_changedtick(bufnr) == edit.tick and vim.bo[bufnr].modifiable
end

--- The place in the buffer of an offset in the edit's text.
---@param edit mercury.NextEdit
---@param offset integer
---@param text? string by default the old one
---@return integer row
---@return integer col
function M.place(edit, offset, text)
  local lines = vim.split((text or edit.old):sub(1, offset), "\n", { plain = true })
  return edit.row + #lines - 1, #lines[#lines]
end

--- The first and the last row that it changes.
---@param edit mercury.NextEdit
---@return integer, integer
function M.rows(edit)
  local first = M.place(edit, edit.spans[1].start)
  local last_span = edit.spans[#edit.spans] --[[@as mercury.Span]]
  return first, (M.place(edit, last_span.stop))
end

--- Make a piece of it, in an undo step of its own.
---@param edit mercury.NextEdit one that fits
---@param piece mercury.Piece
---@return mercury.NextEdit? rest
---@return integer row after what was made, from 0
---@return integer col
function M.make(edit, piece)
  local made = spans.part(edit.old, edit.spans, piece)
  vim.bo[edit.bufnr].undolevels = vim.bo[edit.bufnr].undolevels -- closes the undo block
  for i = #made, 1, -1 do
    local row, col = M.place(edit, made[i].start)
    local end_row, end_col = M.place(edit, made[i].stop)
    local lines = vim.split(made[i].text, "\n", { plain = true })
    api.nvim_buf_set_text(edit.bufnr, row, col, end_row, end_col, lines)
  end
  local last = made[#made] --[[@as mercury.Span]]
  local text = spans.apply(edit.old, made)
  local after = #text - (#edit.old - last.stop) - (last.text:sub(-1) == "\n" and 1 or 0)
  local row, col = M.place(edit, after, text)
  local now = { old = text, tick = api.nvim_buf_get_changedtick(edit.bufnr) }
  local rest = vim.tbl_extend("force", edit, now) --[[@as mercury.NextEdit]]
  return differing(rest), row, col
end

--- The edit as a diff.
---@param edit mercury.NextEdit
---@return string[]
function M.diff(edit)
  local diff = vim.diff(edit.old .. "\n", edit.text .. "\n", { ctxlen = 3 }) --[[@as string]]
  return vim.split(vim.trim(diff), "\n")
end

return M
