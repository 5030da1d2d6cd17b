--- Draws text that is not in the buffer, at the cursor and below.

local notes = require("mercury.notes")

local api = vim.api
local namespace = api.nvim_create_namespace("mercury")

local M = {}

---@alias mercury.Chunk [string, string] text and highlight group

--- Tabs of inline virtual text are drawn eight wide whatever 'tabstop' says, so they become spaces.
---@param text string
---@param before string the text in front of it on the line
---@return string
local function expand_tabs(text, before)
  local shown = before
  for i, part in ipairs(vim.split(text, "\t", { plain = true })) do
    if i > 1 then
      local width = vim.fn.strdisplaywidth(shown)
      shown = shown .. (" "):rep(vim.fn.strdisplaywidth("\t", width))
    end
    shown = shown .. part
  end
  return shown:sub(#before + 1)
end

--- Chunks with their tabs as spaces.
---@param chunks mercury.Chunk[]
---@param before string the text in front of them on the line
---@return mercury.Chunk[]
function M.without_tabs(chunks, before)
  return vim.tbl_map(function(chunk)
    local text = expand_tabs(chunk[1], before)
    before = before .. text
    return { text, chunk[2] }
  end, chunks)
end

---@param chunks mercury.Chunk[]
---@return mercury.Chunk[][]
local function split_lines(chunks)
  local lines = { {} }
  for _, chunk in ipairs(chunks) do
    for i, part in ipairs(vim.split(chunk[1], "\n", { plain = true })) do
      if i > 1 then
        table.insert(lines, {})
      end
      if part ~= "" then
        table.insert(lines[#lines], { part, chunk[2] })
      end
    end
  end
  return lines
end

---@param chunks mercury.Chunk[]
---@return string
local function text_of(chunks)
  return table.concat(vim.tbl_map(function(chunk)
    return chunk[1]
  end, chunks))
end

--- The part of chunks between two bytes.
---@param chunks mercury.Chunk[]
---@param first integer 1-based
---@param last integer
---@return mercury.Chunk[]
local function slice(chunks, first, last)
  local cut, start = {}, 0
  for _, chunk in ipairs(chunks) do
    local part = chunk[1]:sub(math.max(1, first - start), math.max(0, last - start))
    if part ~= "" then
      table.insert(cut, { part, chunk[2] })
    end
    start = start + #chunk[1]
  end
  return cut
end

--- Where the new text of a line goes between the characters that stay.
---@param line string
---@param kept string
---@return { at: integer, first: integer, last: integer }[]? strands bytes of `line`, each to go `at` bytes after the
---  cursor; nil when `kept` is not contained in `line`, in order
local function weave(line, kept)
  local chars, next_char, at, byte = vim.fn.split(kept, "\\zs"), 1, 0, 0
  local strands = { { at = 0, first = 1, last = 0 } }
  for _, char in ipairs(vim.fn.split(line, "\\zs")) do
    byte = byte + #char
    if char == chars[next_char] then
      next_char, at = next_char + 1, at + #char
      strands[#strands + 1] = { at = at, first = byte + 1, last = byte }
    else
      strands[#strands].last = byte
    end
  end
  return next_char > #chars and strands or nil
end

--- Show the namespace in the cursor's window only, because other windows may show the buffer too. The function is
--- experimental; without it all windows show the text.
local function keep_to_window()
  ---@diagnostic disable-next-line: unnecessary-if -- it may be gone in another version
  if api.nvim__ns_set then
    api.nvim__ns_set(namespace, { wins = { api.nvim_get_current_win() } })
  end
end

---@param bufnr integer
function M.clear(bufnr)
  if api.nvim_buf_is_valid(bufnr) then
    api.nvim_buf_clear_namespace(bufnr, namespace, 0, -1)
  end
end

--- Whether ghost text or a note is drawn in a buffer, also by Neovim's own inline completion.
---@param bufnr integer
---@return boolean
function M.is_shown(bufnr)
  local builtin = api.nvim_create_namespace("nvim.lsp.inline_completion")
  for _, each in ipairs({ namespace, builtin }) do
    if #api.nvim_buf_get_extmarks(bufnr, each, 0, -1, { limit = 1 }) > 0 then
      return true
    end
  end
  return false
end

--- Scroll until lines drawn below the cursor's are in view, which Neovim does not do for text that is not in the buffer.
---@param count integer
local function make_room(count)
  local missing = vim.fn.winline() + count - vim.fn.winheight(0)
  if missing > 0 then
    local topline = vim.fn.line("w0") + missing --[[@as integer]]
    vim.fn.winrestview({ topline = math.min(topline, vim.fn.line(".")) })
  end
end

---@param bufnr integer
---@param row integer
---@param lines mercury.Chunk[][]
local function show_below(bufnr, row, lines)
  if #lines > 0 then
    local virt_lines = vim.tbl_map(function(line)
      return #line > 0 and line or { { "", "MercuryGhost" } }
    end, lines)
    api.nvim_buf_set_extmark(bufnr, namespace, row, 0, { virt_lines = virt_lines })
    make_room(#lines)
  end
end

--- Draw text at the cursor of the current window, in place of what was drawn before.
---@param bufnr integer
---@param place mercury.Place the cursor
---@param chunks mercury.Chunk[]
---@param replaced string text after the cursor which is part of the text, or to be replaced by it
function M.show(bufnr, place, chunks, replaced)
  M.clear(bufnr)
  keep_to_window()
  local lines = split_lines(chunks)
  local first = text_of(lines[1])
  local strands = weave(first, replaced)
  if not strands then
    strands = { { at = 0, first = 1, last = #first } }
    api.nvim_buf_set_extmark(bufnr, namespace, place.row, place.col, {
      end_col = place.col + #replaced,
      hl_group = "MercuryReplaced",
    })
  end
  local before = api.nvim_buf_get_text(bufnr, place.row, 0, place.row, place.col, {})[1]
  for _, strand in ipairs(strands) do
    local parts = slice(lines[1], strand.first, strand.last)
    if #parts > 0 then
      api.nvim_buf_set_extmark(bufnr, namespace, place.row, place.col + strand.at, {
        virt_text = M.without_tabs(parts, before),
        virt_text_pos = "inline",
        hl_mode = "replace", -- beside a matching bracket, "combine" would take the bracket's colours
      })
    end
  end
  show_below(bufnr, place.row, vim.list_slice(lines, 2))
end

--- Say something after a line of the current window, or in lines below it where it would be cut off.
---@param in_namespace integer
---@param row integer
---@param chunk mercury.Chunk
function M.say(in_namespace, row, chunk)
  local window = vim.fn.getwininfo(api.nvim_get_current_win())[1]
  local width, stop = window.width - window.textoff, vim.fn.virtcol({ row + 1, "$" })
  local col = vim.wo.wrap and (math.max(stop, 2) - 2) % width + 1 or stop - 1 - vim.fn.winsaveview().leftcol
  local text, group = unpack(chunk)
  local has_room = col + vim.fn.strdisplaywidth(text) < width
  local below = vim.tbl_map(function(line)
    return { { line, group } }
  end, has_room and {} or notes.in_lines(text, width - 1))
  api.nvim_buf_set_extmark(0, in_namespace, row, 0, {
    virt_text = has_room and { chunk } or nil,
    virt_lines = not has_room and below or nil,
    virt_text_pos = "eol",
  })
end

--- Mark that there is a text, which is not shown.
---@param bufnr integer
---@param row integer
function M.mark(bufnr, row)
  M.clear(bufnr)
  M.note(row, "…")
end

--- Say why nothing new is drawn; the command line says that the user inserts.
---@param row integer
---@param text string
function M.note(row, text)
  keep_to_window()
  M.say(namespace, row, { text, "MercuryNote" })
end

return M
