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

---@param lines string[]
---@return mercury.Chunk[][]
local function added(lines)
  return vim.tbl_map(function(line)
    return draw.without_tabs({ { line, "MercuryAdded" } }, "")
  end, lines)
end

--- Show new lines between two rows; nothing can be shown above the first one.
---@param bufnr integer
---@param row integer the row that they push down
---@param lines string[]
local function show_between(bufnr, row, lines)
  mark(bufnr, math.max(0, row - 1), 0, { virt_lines = added(lines), virt_lines_above = false })
end

---@param edit mercury.NextEdit
---@param span mercury.Span
local function show_span(edit, span)
  local row, col = edits.place(edit, span.start)
  local end_row, end_col = edits.place(edit, span.stop)
  if span.stop > span.start then
    mark(edit.bufnr, row, col, { end_row = end_row, end_col = end_col, hl_group = "MercuryRemoved" })
  end
  local lines = vim.split(span.text, "\n", { plain = true })
  if #lines > 1 and end_col == 0 and lines[#lines] == "" then
    show_between(edit.bufnr, end_row, vim.list_slice(lines, 1, #lines - 1))
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

--- Draw what it removes and adds.
---@param edit mercury.NextEdit
function M.show(edit)
  for _, span in ipairs(edit.spans) do
    show_span(edit, span)
  end
end

--- Say behind its line, or the cursor's if it is out of sight, how far a renaming is and which key leads on.
---@param edit mercury.NextEdit
---@param key? string|false
function M.point(edit, key)
  local bufnr, row = api.nvim_get_current_buf(), edits.rows(edit)
  local first, last, at = vim.fn.line("w0") - 1, vim.fn.line("w$") - 1, api.nvim_win_get_cursor(0)[1] - 1
  local words, label = {}, edit.renaming and edit.renaming.label
  if bufnr ~= edit.bufnr then
    table.insert(words, ("→ %s, line %d"):format(vim.fs.basename(api.nvim_buf_get_name(edit.bufnr)), row + 1))
  elseif row < first or row > last then
    table.insert(words, (row < first and "↑ line %d" or "↓ line %d"):format(row + 1))
  else
    at, label = row, label and (label:match("%((.*)%)$") or label)
  end
  if label then
    table.insert(words, label)
  end
  if key then
    table.insert(words, key)
  end
  if #words > 0 then
    mark(bufnr, at, 0, {
      virt_text = { { "  " .. table.concat(words, " · "), "MercuryNote" } },
      virt_text_pos = "eol",
    })
  end
end

return M
