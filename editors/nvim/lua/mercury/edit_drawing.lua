--- Draws a next edit in place, and says where it is and which key leads on.

local draw = require("mercury.draw")
local edits = require("mercury.edit")

local api = vim.api
local namespace = api.nvim_create_namespace("mercury.next_edits")

local M = {}

---@param bufnr integer
function M.clear(bufnr)
  if api.nvim_buf_is_valid(bufnr) then
    api.nvim_buf_clear_namespace(bufnr, namespace, 0, -1)
  end
end

---@param bufnr integer
---@param row integer
---@param col integer
---@param options vim.api.keyset.set_extmark
local function mark(bufnr, row, col, options)
  api.nvim_buf_set_extmark(bufnr, namespace, row, col, options)
end

--- New lines as they are drawn; their indentation has no colour.
---@param lines string[]
---@return mercury.Chunk[][]
local function added(lines)
  return vim.tbl_map(function(line)
    local indent = line:match("^%s*") or ""
    return draw.without_tabs({ { indent, "" }, { line:sub(#indent + 1), "MercuryAdded" } }, "")
  end, lines)
end

--- Show new lines between two rows; nothing can be shown above the first one.
---@param bufnr integer
---@param row integer the row that they push down
---@param lines string[]
---@param hint? mercury.Chunk goes after the first of them
local function show_between(bufnr, row, lines, hint)
  local drawn = added(lines)
  table.insert(drawn[1], hint)
  mark(bufnr, math.max(0, row - 1), 0, { virt_lines = drawn, virt_lines_above = false })
end

--- Whether it only adds whole lines.
---@param edit mercury.NextEdit
---@param span mercury.Span
---@return boolean
local function adds_lines(edit, span)
  local _, end_col = edits.place(edit, span.stop)
  return span.text:sub(-1) == "\n" and end_col == 0
end

---@param edit mercury.NextEdit
---@param span mercury.Span
---@param hint? mercury.Chunk
local function show_span(edit, span, hint)
  local row, col = edits.place(edit, span.start)
  local end_row, end_col = edits.place(edit, span.stop)
  if span.stop > span.start then
    mark(edit.bufnr, row, col, { end_row = end_row, end_col = end_col, hl_group = "MercuryRemoved" })
  end
  local lines = vim.split(span.text, "\n", { plain = true })
  if adds_lines(edit, span) then
    show_between(edit.bufnr, end_row, vim.list_slice(lines, 1, #lines - 1), hint)
    return
  end
  if lines[1] ~= "" then
    local before = api.nvim_buf_get_text(edit.bufnr, end_row, 0, end_row, end_col, {})[1]
    mark(edit.bufnr, end_row, end_col, {
      virt_text = draw.without_tabs({ { lines[1], "MercuryAdded" } }, before or ""),
      virt_text_pos = "inline",
    })
  end
  if #lines > 1 then
    show_between(edit.bufnr, end_row + 1, vim.list_slice(lines, 2))
  end
end

--- Where a row out of sight is, as seen from the cursor.
---@param bufnr integer
---@param row integer from 0
---@return string
function M.where(bufnr, row)
  if api.nvim_get_current_buf() ~= bufnr then
    return ("→ %s, line %d"):format(vim.fs.basename(api.nvim_buf_get_name(bufnr)), row + 1)
  end
  return (row + 1 < api.nvim_win_get_cursor(0)[1] and "↑ line %d" or "↓ line %d"):format(row + 1)
end

--- The hint that says these words after a line.
---@param words string[]
---@return mercury.Chunk
function M.hint(words)
  return { "  " .. table.concat(words, " · "), "MercuryNote" }
end

--- The key that leads on here: that of ghost text, unless it inserts ghost text or indents here.
---@return string? key nil if none is mapped
function M.key()
  local keys = require("mercury.config").current.keys
  local own, is_inserting = require("mercury.keys"), vim.fn.mode() == "i"
  if not own.are_free() then
    return nil
  end
  local is_indenting = require("mercury.jump").is_indenting()
  local is_taken = is_indenting or is_inserting and own.is_of_snippet(keys.next_edit_accept or nil)
  local is_free = not draw.is_shown(api.nvim_get_current_buf()) and not is_taken
  return is_free and keys.next_edit_accept or keys.next_edit or nil
end

--- Where the edit is as seen from the cursor, how far a renaming is, and which key leads on.
---@param edit mercury.NextEdit
---@return mercury.Chunk? hint nil if there is nothing to say
---@return boolean is_seen whether the edit is in view
local function hint_of(edit)
  local row, label = edits.rows(edit), edit.renaming and edit.renaming.label
  local first, last = vim.fn.line("w0") - 1, vim.fn.line("w$") - 1
  local is_here = api.nvim_get_current_buf() == edit.bufnr
  local is_seen = is_here and row >= first and row <= last and vim.fn.foldclosed(row + 1) < 0
  local words = {}
  if not is_seen then
    table.insert(words, M.where(edit.bufnr, row))
  end
  if label then
    table.insert(words, is_seen and label:match("%((.*)%)$") or label)
  end
  table.insert(words, M.key())
  return #words > 0 and M.hint(words) or nil, is_seen
end

--- Draw what it removes and adds, and the hint: after its first line, or the cursor's if it is out of sight.
---@param edit mercury.NextEdit
function M.show(edit)
  local hint, is_seen = hint_of(edit)
  local first = edit.spans[1] --[[@as mercury.Span]]
  local is_beside_lines = is_seen and adds_lines(edit, first)
  for _, span in ipairs(edit.spans) do
    show_span(edit, span, span == first and is_beside_lines and hint or nil)
  end
  if hint and not is_beside_lines then
    local row = is_seen and edits.rows(edit) or api.nvim_win_get_cursor(0)[1] - 1
    draw.say(namespace, row, hint)
  end
end

return M
