--- The edit that follows from the user's last ones, drawn where it would be made; keys go there and apply it.

local api = vim.api
local namespace = api.nvim_create_namespace("mercury.next_edits")

local M = {}

local METHOD = "textDocument/copilotInlineEdit"

--- Quiet time in milliseconds after a change or a move of the cursor, before the server is asked.
local PAUSE_MS = 120

---@class mercury.NextEdit
---@field bufnr integer
---@field tick integer the buffer's version
---@field row integer where the change starts, from 0
---@field col integer bytes
---@field end_row integer
---@field end_col integer
---@field text string
---@field id? string
---@field renaming? table how far a renaming is, and the command that finishes it

---@type mercury.NextEdit?
local pending

---@type uv.uv_timer_t?
local timer

---@type { client: vim.lsp.Client, id: integer }?
local request

--- Where the server was asked last; it is not asked about a place twice.
local asked = ""

---@param bufnr integer
local function place(bufnr)
  return ("%d:%d:%d"):format(bufnr, api.nvim_buf_get_changedtick(bufnr), api.nvim_win_get_cursor(0)[1])
end

---@param byte string?
local function is_word(byte)
  return byte ~= nil and byte:find("[%w_\128-\255]") ~= nil
end

--- The number of equal bytes at the start, back to the start of a word.
---@param old string
---@param new string
---@return integer
local function equal_start(old, new)
  local count = 0
  while count < math.min(#old, #new) and old:byte(count + 1) == new:byte(count + 1) do
    count = count + 1
  end
  local function inside()
    local last, a, b = old:sub(count, count), old:sub(count + 1, count + 1), new:sub(count + 1, count + 1)
    return count > 0 and is_word(last) and (is_word(a ~= "" and a or nil) or is_word(b ~= "" and b or nil))
  end
  while inside() do
    count = count - 1
  end
  return count
end

--- The place behind some text that starts at another place.
---@param row integer
---@param col integer
---@param text string
---@return integer, integer
local function behind(row, col, text)
  local lines = vim.split(text, "\n", { plain = true })
  return row + #lines - 1, (#lines == 1 and col or 0) + #lines[#lines]
end

--- The server's edit without what stays of the old text at either end.
---@param bufnr integer
---@param item table
---@param encoding "utf-8"|"utf-16"|"utf-32"
---@return mercury.NextEdit?
local function narrowed(bufnr, item, encoding)
  local from, to = item.range.start, item.range["end"]
  local function byte(at)
    local line = api.nvim_buf_get_lines(bufnr, at.line, at.line + 1, false)[1]
    return line and vim.str_byteindex(line, encoding, at.character, false) or 0
  end
  local last = math.min(to.line, api.nvim_buf_line_count(bufnr) - 1)
  local end_col = to.line > last and #api.nvim_buf_get_lines(bufnr, last, last + 1, false)[1] or byte(to)
  local ok, lines = pcall(api.nvim_buf_get_text, bufnr, from.line, byte(from), last, end_col, {})
  local old, new = ok and table.concat(lines, "\n") or nil, (item.text:gsub("\r\n?", "\n"))
  if not old or old == new then
    return
  end
  local first = equal_start(old, new)
  local rest_old, rest_new = old:sub(first + 1), new:sub(first + 1)
  local tail = equal_start(rest_old:reverse(), rest_new:reverse())
  local row, col = behind(from.line, byte(from), old:sub(1, first))
  local removed = rest_old:sub(1, #rest_old - tail)
  local end_row, stop = behind(row, col, removed)
  return {
    bufnr = bufnr,
    tick = api.nvim_buf_get_changedtick(bufnr),
    row = row,
    col = col,
    end_row = end_row,
    end_col = stop,
    text = rest_new:sub(1, #rest_new - tail),
    id = vim.tbl_get(item, "command", "arguments", 1),
    renaming = item.mercury,
  }
end

---@param edit mercury.NextEdit
---@return boolean
local function is_current(edit)
  return api.nvim_buf_is_valid(edit.bufnr)
    and api.nvim_get_current_buf() == edit.bufnr
    and api.nvim_buf_get_changedtick(edit.bufnr) == edit.tick
end

---@param edit mercury.NextEdit
---@param key? string|false
---@return string, integer text of the hint, and the row behind which it is shown
local function hint(edit, key)
  local first, last, cursor = vim.fn.line("w0") - 1, vim.fn.line("w$") - 1, api.nvim_win_get_cursor(0)[1] - 1
  local words = {}
  local is_seen = edit.row >= first and edit.row <= last
  if not is_seen then
    table.insert(words, (edit.row < first and "↑ line %d" or "↓ line %d"):format(edit.row + 1))
  end
  if edit.renaming then
    table.insert(words, is_seen and edit.renaming.label:match("%((.*)%)$") or edit.renaming.label)
  end
  if key then
    table.insert(words, key)
  end
  return table.concat(words, " · "), is_seen and edit.row or cursor
end

--- Draw the edit, and say behind its line, or the cursor's if it is out of sight, which key leads on.
local function draw()
  local edit = pending
  if not edit then
    return
  end
  api.nvim_buf_clear_namespace(edit.bufnr, namespace, 0, -1)
  if edit.end_row > edit.row or edit.end_col > edit.col then
    api.nvim_buf_set_extmark(edit.bufnr, namespace, edit.row, edit.col, {
      end_row = edit.end_row,
      end_col = edit.end_col,
      hl_group = "MercuryRemoved",
    })
  end
  local lines = vim.split(edit.text, "\n", { plain = true })
  local added = vim.tbl_map(function(line)
    return { { line, "MercuryAdded" } }
  end, lines)
  if #lines > 1 and edit.end_col == 0 and lines[#lines] == "" then -- whole lines
    table.remove(added)
    local options = { virt_lines = added, virt_lines_above = edit.end_row > 0 }
    api.nvim_buf_set_extmark(edit.bufnr, namespace, edit.end_row, 0, options)
  else
    api.nvim_buf_set_extmark(edit.bufnr, namespace, edit.end_row, edit.end_col, {
      virt_text = added[1],
      virt_text_pos = "inline",
      hl_mode = "combine",
      virt_lines = #added > 1 and vim.list_slice(added, 2) or nil,
    })
  end
  local text, row = hint(edit, require("mercury.config").current.keys.next_edit)
  if text ~= "" then
    api.nvim_buf_set_extmark(edit.bufnr, namespace, row, 0, {
      virt_text = { { "  " .. text, "MercuryNote" } },
      virt_text_pos = "eol",
    })
  end
end

--- Forget the edit and what is under way.
function M.clear()
  if pending and api.nvim_buf_is_valid(pending.bufnr) then
    api.nvim_buf_clear_namespace(pending.bufnr, namespace, 0, -1)
  end
  pending = nil
  if timer then
    timer:stop()
  end
  if request then
    request.client:cancel_request(request.id)
    request = nil
  end
end

---@param client vim.lsp.Client
---@param bufnr integer
local function ask(client, bufnr)
  local tick, here = api.nvim_buf_get_changedtick(bufnr), place(bufnr)
  local encoding = client.offset_encoding --[[@as "utf-16"]]
  local params = vim.lsp.util.make_position_params(0, encoding) --[[@as table]]
  params.textDocument.version = vim.lsp.util.buf_versions[bufnr]
  params.mercury = { fills = false }
  local sent, id = client:request(METHOD, params, function(_, answer)
    request = nil
    if not api.nvim_buf_is_valid(bufnr) or api.nvim_get_current_buf() ~= bufnr then
      return
    end
    local item = type(answer) == "table" and vim.tbl_get(answer, "edits", 1)
    if item and api.nvim_buf_get_changedtick(bufnr) == tick then
      pending = narrowed(bufnr, item, encoding)
      draw()
    end
  end, bufnr)
  request = sent and id and { client = client, id = id } or nil
  asked = here
end

--- Ask for the next edit once the user pauses.
---@param bufnr integer
---@param wait_ms? integer
local function ask_soon(bufnr, wait_ms)
  timer = timer or assert(vim.uv.new_timer())
  timer:start(
    wait_ms or PAUSE_MS,
    0,
    vim.schedule_wrap(function()
      local client = require("mercury.client").get(bufnr)
      if client and api.nvim_get_current_buf() == bufnr and place(bufnr) ~= asked then
        ask(client, bufnr)
      end
    end)
  )
end

--- The text or the cursor changed.
---@param bufnr integer
function M.changed(bufnr)
  if pending and is_current(pending) then
    draw()
    return
  end
  M.clear()
  local config = require("mercury.config")
  if config.current.next_edits and config.wants(bufnr) and vim.b[bufnr].changedtick > 2 then
    ask_soon(bufnr)
  end
end

---@param command string
---@param arguments table
local function execute(command, arguments)
  local client = require("mercury.client").get(0)
  if client then
    client:request("workspace/executeCommand", { command = command, arguments = arguments }, nil, 0)
  end
end

--- Make the edit that is drawn, and put the cursor behind it; the next one is asked for at once.
---@return boolean applied false when none is drawn
function M.apply()
  local edit = pending
  if not edit or not is_current(edit) then
    return false
  end
  M.clear()
  local lines = vim.split(edit.text, "\n", { plain = true })
  api.nvim_buf_set_text(edit.bufnr, edit.row, edit.col, edit.end_row, edit.end_col, lines)
  local row, col = behind(edit.row, edit.col, edit.text)
  api.nvim_win_set_cursor(0, { math.min(row + 1, api.nvim_buf_line_count(edit.bufnr)), col })
  if edit.id then
    execute("mercury.accepted", { edit.id })
  end
  ask_soon(edit.bufnr, 0)
  return true
end

--- Go to the edit that is drawn, or make it if the cursor is in its line.
---@return boolean done false when none is drawn
function M.go_on()
  local edit = pending
  if not edit or not is_current(edit) then
    return false
  end
  if api.nvim_win_get_cursor(0)[1] == edit.row + 1 then
    return M.apply()
  end
  vim.cmd("normal! m'")
  api.nvim_win_set_cursor(0, { edit.row + 1, edit.col })
  draw()
  return true
end

--- Hide the edit; the server does not offer it again for the same change.
---@return boolean dismissed false when none is drawn
function M.dismiss()
  local edit = pending
  if not edit then
    return false
  end
  M.clear()
  local client = require("mercury.client").get(edit.bufnr)
  if client and edit.id then
    ---@diagnostic disable-next-line: param-type-mismatch -- a request of Copilot's dialect
    client:request("notifyRejected", { uuids = { edit.id } }, function() end, edit.bufnr)
  end
  asked = place(edit.bufnr)
  return true
end

--- Make all places that are left of the renaming that is drawn, in one undo step.
---@return boolean asked false when no renaming is drawn
function M.apply_all()
  local command = pending and pending.renaming and pending.renaming.applyAll
  if not command then
    return false
  end
  M.clear()
  execute(command.command, command.arguments)
  return true
end

--- Show the whole edit as a diff in a floating window.
---@return boolean shown false when none is drawn
function M.preview()
  local edit = pending
  if not edit or not is_current(edit) then
    return false
  end
  local old = api.nvim_buf_get_lines(edit.bufnr, edit.row, edit.end_row + 1, false)
  local whole = table.concat(old, "\n")
  local last = old[#old] or ""
  local new = whole:sub(1, edit.col) .. edit.text .. last:sub(edit.end_col + 1)
  local diff = vim.diff(whole .. "\n", new .. "\n", { ctxlen = 3 }) --[[@as string]]
  vim.lsp.util.open_floating_preview(vim.split(vim.trim(diff), "\n"), "diff", { border = "rounded" })
  return true
end

--- Map the key in normal and insert mode: it goes to the edit, then makes it; without one it asks the server.
---@param lhs? string|false
---@param otherwise fun(): boolean
function M.map(lhs, otherwise)
  if lhs then
    vim.keymap.set({ "n", "i" }, lhs, function()
      return M.go_on() or otherwise()
    end, { desc = "Mercury: next edit" })
  end
end

return M
