--- The edit that follows from the user's last ones: asked for, drawn where it would be made, made by a key.

local config = require("mercury.config")
local drawing = require("mercury.edit_drawing")
local edits = require("mercury.edit")
local jump = require("mercury.jump")
local keys = require("mercury.keys")
local mercury_client = require("mercury.client")
local notes = require("mercury.notes")

local api = vim.api

local M = {}

local METHOD = "textDocument/copilotInlineEdit"

--- Quiet time in milliseconds after a change or a move of the cursor, before the server is asked.
local PAUSE_MS = 120

--- The edit that is drawn.
---@type mercury.NextEdit?
local pending

--- The buffer and its version that it was asked for in; the edit may be in another one.
---@type { bufnr: integer, tick: integer }?
local origin

---@type uv.uv_timer_t?
local timer

---@type { client: vim.lsp.Client, id: integer }?
local request

--- The window of the diff.
---@type integer?
local preview

--- Where the user is after an edit was made, while the next one is asked for, and what the keys pressed meanwhile do if
--- there is none.
---@type { place: string, held: fun()[] }?
local following

--- How long keys wait for the next edit, in milliseconds.
local PATIENCE_MS = 1000

--- Where the server was asked last; it is not asked about a place twice.
local asked = ""

---@param bufnr integer
local function place(bufnr)
  return ("%d:%d:%d"):format(bufnr, api.nvim_buf_get_changedtick(bufnr), api.nvim_win_get_cursor(0)[1])
end

--- The edit that is drawn, if the user is where it can be seen, and its text and theirs are still the same.
---@return mercury.NextEdit?
local function current()
  local here, from = api.nvim_get_current_buf(), origin
  if not pending or not edits.fits(pending) then
    return
  end
  local is_origin = from and here == from.bufnr and api.nvim_buf_get_changedtick(here) == from.tick
  return (here == pending.bufnr or is_origin) and pending or nil
end

local function erase()
  if pending then
    drawing.clear(pending.bufnr)
  end
  if origin then
    drawing.clear(origin.bufnr)
  end
end

--- Draw the edit, and say where it is as seen from the cursor.
function M.draw()
  local edit = current()
  if edit then
    erase()
    drawing.show(edit)
  end
end

---@return boolean closed false when none is open
local function close_preview()
  local is_open = preview ~= nil and api.nvim_win_is_valid(preview)
  if preview and is_open then
    api.nvim_win_close(preview, true)
  end
  return is_open
end

--- Forget the edit and what is under way.
function M.clear()
  erase()
  close_preview()
  pending, origin = nil, nil
  if timer then
    timer:stop()
  end
  if request then
    request.client:cancel_request(request.id)
    request, asked = nil, ""
  end
end

--- A buffer's document was closed, or the server is gone, and with it what it knew.
---@param bufnr integer
---@param is_gone boolean
function M.detached(bufnr, is_gone)
  local is_concerned = bufnr == api.nvim_get_current_buf() or pending ~= nil and bufnr == pending.bufnr
  if is_gone or is_concerned then
    request, asked = nil, ""
    notes.reset()
    M.clear()
  end
end

--- Where the server is told that the cursor is: in its line, but in normal mode at neither end of the name there, which
--- the server would take for unfinished.
---@param encoding "utf-16"
---@return table
local function position_params(encoding)
  local params = vim.lsp.util.make_position_params(0, encoding) --[[@as table]]
  if api.nvim_get_mode().mode == "n" then
    local line, col = api.nvim_get_current_line(), api.nvim_win_get_cursor(0)[2]
    local is_in_first_name = vim.fn.match(line:sub(1, col), [[^\k*$]]) == 0
    params.position.character = is_in_first_name and vim.str_utfindex(line, encoding) or 0
  end
  return params
end

--- Let the keys that waited for the next edit go on to it, or do what they do without one.
local function let_go()
  local held = following and following.place == place(api.nvim_get_current_buf()) and following.held or {}
  following = nil
  for _, otherwise in ipairs(held) do
    if not M.go_on(otherwise) then
      otherwise()
    end
  end
end

---@param client vim.lsp.Client
---@param bufnr integer
local function ask(client, bufnr)
  local tick = api.nvim_buf_get_changedtick(bufnr)
  local params = position_params(client.offset_encoding --[[@as "utf-16"]])
  params.textDocument.version = vim.lsp.util.buf_versions[bufnr]
  params.mercury = { fills = false }
  local sent, id = client:request(METHOD, params, function(_, answer)
    request = nil
    if not api.nvim_buf_is_valid(bufnr) or api.nvim_get_current_buf() ~= bufnr then
      return
    end
    local item = type(answer) == "table" and vim.tbl_get(answer, "edits", 1)
    if item and api.nvim_buf_get_changedtick(bufnr) == tick then
      erase()
      pending, origin = edits.read(client, item), { bufnr = bufnr, tick = tick }
      M.draw()
    end
    let_go()
  end, bufnr)
  request = sent and id and { client = client, id = id } or nil
  asked = place(bufnr)
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
      local client = mercury_client.get(bufnr)
      if client and api.nvim_get_current_buf() == bufnr and place(bufnr) ~= asked then
        ask(client, bufnr)
      end
    end)
  )
end

--- The text, the cursor or the buffer changed.
---@param bufnr integer
function M.changed(bufnr)
  if keys.are_of_macro() then
    M.clear()
    return
  elseif current() then
    M.draw()
    return
  elseif request and asked == place(bufnr) then
    return
  end
  M.clear()
  if config.current.next_edits and config.wants(bufnr) and vim.b[bufnr].changedtick > 2 then
    ask_soon(bufnr)
  end
end

---@param command string
---@param arguments table
local function execute(command, arguments)
  local client = mercury_client.get(0)
  if client then
    notes.run(client, 0, command, arguments)
  end
end

--- Make a piece of the edit that is drawn, by default all of it, and put the cursor after it. What is left stays drawn;
--- after the last piece the next edit is asked for at once.
---@param piece? mercury.Piece
---@return boolean applied false when none is drawn
function M.apply(piece)
  local edit = current()
  if not edit then
    return false
  end
  M.clear()
  local rest, row, col = edits.make(edit, piece or "all")
  jump.to(edit.bufnr, row, col)
  if rest then
    M.clear() -- what going there began
    pending = rest
    M.draw()
    return true
  end
  if edit.id then
    execute("mercury.accepted", { edit.id })
  end
  local this = { place = place(edit.bufnr), held = {} }
  following = this
  vim.defer_fn(function()
    ---@diagnostic disable-next-line: unnecessary-if -- another one may have been made meanwhile
    if following == this then
      let_go()
    end
  end, PATIENCE_MS)
  ask_soon(edit.bufnr, 0)
  return true
end

---@param edit mercury.NextEdit
---@return boolean
local function is_at(edit)
  local first, last = edits.rows(edit)
  local row = api.nvim_win_get_cursor(0)[1] - 1
  local is_seen = vim.fn.foldclosed(row + 1) < 0
  return api.nvim_get_current_buf() == edit.bufnr and is_seen and first <= row and row <= last
end

--- Make a piece of the edit that is drawn, if the cursor is in its lines.
---@param piece mercury.Piece
---@return boolean done
function M.apply_here(piece)
  local edit = current()
  return edit ~= nil and is_at(edit) and M.apply(piece)
end

--- Go to the edit that is drawn, or make it if the cursor is in its lines.
---@param otherwise? fun() what the key does if no edit follows the one just made; with it the key waits for that one
---@return boolean done false when none is drawn, nor waited for
function M.go_on(otherwise)
  local edit = current()
  if not edit then
    if otherwise and following and following.place == place(api.nvim_get_current_buf()) then
      table.insert(following.held, otherwise)
      return true
    end
    return false
  elseif is_at(edit) then
    return M.apply()
  end
  jump.from_here(edit.bufnr, edits.place(edit, edit.spans[1].start))
  M.draw()
  return true
end

--- Close the diff, or else hide the edit, which the server does not offer again for the same change.
---@return boolean dismissed false when none is drawn
function M.dismiss()
  local edit = current()
  if close_preview() then
    return true
  elseif not edit then
    return false
  end
  M.clear()
  local client = mercury_client.get(edit.bufnr)
  if client and edit.id then
    ---@diagnostic disable-next-line: param-type-mismatch -- a request of Copilot's dialect
    client:request("notifyRejected", { uuids = { edit.id } }, function() end, edit.bufnr)
  end
  asked = place(api.nvim_get_current_buf())
  return true
end

--- Make all places that are left of the renaming that is drawn, in one undo step.
---@return boolean asked false when no renaming is drawn
function M.apply_all()
  local edit = current()
  local command = edit and edit.renaming and edit.renaming.applyAll
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
  local edit = current()
  if not edit then
    return false
  end
  _, preview = vim.lsp.util.open_floating_preview(edits.diff(edit), "diff", { border = "rounded" })
  return true
end

return M
