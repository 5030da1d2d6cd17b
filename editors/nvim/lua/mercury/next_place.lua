--- Where the user probably edits next when no edit can be offered: the cursor's line points to it, and a key goes there.

local config = require("mercury.config")
local draw = require("mercury.draw")
local drawing = require("mercury.edit_drawing")
local edits = require("mercury.edit")
local jump = require("mercury.jump")

local api = vim.api
local namespace = api.nvim_create_namespace("mercury.next_place")

local M = {}

local METHOD = "mercury/nextPlace"

--- Quiet time in milliseconds after an answer without an edit, before the server is asked for a place.
local PAUSE_MS = 400

---@class mercury.NextPlace
---@field bufnr integer
---@field tick integer the buffer's version
---@field row integer from 0
---@field col integer

---@class mercury.PlaceQuestion
---@field bufnr integer
---@field here string the text and the cursor that it is asked for
---@field client vim.lsp.Client
---@field id? integer the request, while it is open
---@field found? mercury.NextPlace the place that the cursor's line points to

--- What is waited for, asked or shown.
---@type mercury.PlaceQuestion?
local question

---@type uv.uv_timer_t?
local timer

--- After a jump or a dismissal nothing is asked until some text changes.
local is_quiet = false

--- The versions of buffers when the user was last in them.
---@type table<integer, integer>
local seen = {}

---@param bufnr integer
local function here(bufnr)
  local cursor = api.nvim_win_get_cursor(0)
  return ("%d:%d:%d:%d"):format(bufnr, api.nvim_buf_get_changedtick(bufnr), cursor[1], cursor[2])
end

--- The question, if the user is still where it is asked for.
---@return mercury.PlaceQuestion?
local function current()
  local bufnr = api.nvim_get_current_buf()
  return question and question.bufnr == bufnr and question.here == here(bufnr) and question or nil
end

--- Whether the cursor's line points to a place.
---@return boolean
function M.is_shown()
  local asked = current()
  return asked ~= nil and asked.found ~= nil
end

--- Forget the place and what is under way.
function M.clear()
  if timer then
    timer:stop()
  end
  local old = question
  question = nil
  if not old then
    return
  elseif old.id then
    old.client:cancel_request(old.id)
  elseif old.found and api.nvim_buf_is_valid(old.bufnr) then
    api.nvim_buf_clear_namespace(old.bufnr, namespace, 0, -1)
  end
end

--- The text, the cursor or the buffer may have changed.
---@param bufnr integer
function M.changed(bufnr)
  local version = vim.lsp.util.buf_versions[bufnr]
  if seen[bufnr] and seen[bufnr] ~= version then
    is_quiet = false
  end
  seen[bufnr] = version
  if not current() then
    M.clear()
  end
end

--- Something may be drawn at the cursor: ghost text goes before a place.
function M.give_way()
  if question and question.found and draw.is_shown(question.bufnr) then
    M.clear()
  end
end

---@param client vim.lsp.Client
---@param answer table
---@return mercury.NextPlace? place nil if it is in another text than a buffer's
local function read(client, answer)
  local bufnr = edits.buffer_of(client, answer.textDocument.uri)
  if not bufnr or answer.textDocument.version ~= vim.lsp.util.buf_versions[bufnr] then
    return
  end
  local row = answer.position.line
  local line = api.nvim_buf_get_lines(bufnr, row, row + 1, false)[1]
  if not line then
    return
  end
  local encoding = client.offset_encoding --[[@as "utf-16"]]
  local col = vim.str_byteindex(line, encoding, answer.position.character, false)
  return { bufnr = bufnr, tick = api.nvim_buf_get_changedtick(bufnr), row = row, col = col }
end

---@param place mercury.NextPlace
local function show(place)
  local bufnr, row = api.nvim_get_current_buf(), api.nvim_win_get_cursor(0)[1] - 1
  local words = { drawing.where(place.bufnr, place.row), drawing.key() } --[[@as string[] ]]
  api.nvim_buf_set_extmark(bufnr, namespace, row, 0, { virt_text = { drawing.hint(words) }, virt_text_pos = "eol" })
end

---@param asked mercury.PlaceQuestion
local function ask(asked)
  local client, bufnr = asked.client, asked.bufnr
  local params = vim.lsp.util.make_position_params(0, client.offset_encoding --[[@as "utf-16"]]) --[[@as table]]
  params.textDocument.version = vim.lsp.util.buf_versions[bufnr]
  local sent, id = client:request(METHOD, params, function(_, answer)
    asked.id = nil
    -- A mapping may have moved the cursor before an event says so.
    if current() == asked and type(answer) == "table" and not draw.is_shown(bufnr) then
      local place = read(client, answer)
      if place then
        asked.found = place
        show(place)
      end
    end
  end, bufnr)
  asked.id = sent and id or nil
end

--- Ask for a place if text and cursor stay as they are, for which the server has no edit.
---@param client vim.lsp.Client
---@param bufnr integer the current buffer
function M.ask_soon(client, bufnr)
  if current() or is_quiet or not config.current.next_places then
    return
  end
  M.clear()
  local asked = { bufnr = bufnr, here = here(bufnr), client = client } ---@type mercury.PlaceQuestion
  question = asked
  timer = timer or assert(vim.uv.new_timer())
  timer:start(
    PAUSE_MS,
    0,
    vim.schedule_wrap(function()
      if current() == asked and not draw.is_shown(bufnr) then
        ask(asked)
      end
    end)
  )
end

--- Hide the place; none is shown until some text changes.
---@return mercury.NextPlace? place nil when none is shown, or when its text has changed
local function take()
  local asked = current()
  local place = asked and asked.found
  if not place then
    return
  end
  M.clear()
  if api.nvim_buf_is_loaded(place.bufnr) and api.nvim_buf_get_changedtick(place.bufnr) == place.tick then
    is_quiet = true
    return place
  end
end

--- Go to the place that is shown.
---@return boolean done false when none is shown
function M.go()
  local place = take()
  if not place then
    return false
  end
  seen[place.bufnr] = vim.lsp.util.buf_versions[place.bufnr]
  jump.from_here(place.bufnr, place.row, place.col)
  return true
end

--- Hide the place that is shown.
---@return boolean dismissed false when none is shown
function M.dismiss()
  return take() ~= nil
end

return M
