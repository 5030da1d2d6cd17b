--- Ghost text of our own, for Neovim 0.11: one State per buffer.

local config = require("mercury.config")
local denoising = require("mercury.denoising")
local draw = require("mercury.draw")
local items = require("mercury.item")
local keys = require("mercury.keys")
local mercury_client = require("mercury.client")
local notes = require("mercury.notes")
local pieces = require("mercury.piece")
local status = require("mercury.status")

local api = vim.api
local Trigger = { invoked = 1, automatic = 2 }

-- RequestCancelled, ContentModified, ServerCancelled: the request is out of date, nothing went wrong.
local overtaken = { [-32800] = true, [-32801] = true, [-32802] = true }

---@class mercury.Place
---@field tick integer changedtick
---@field row integer 0-based
---@field col integer byte column, 0-based

---@class mercury.Question : mercury.Place
---@field id? integer the request, so that it can be cancelled
---@field step? integer how far to cycle when the answer comes
---@field shown? string what was shown when it was asked
---@field token? string under which the server shows the denoising

---@class mercury.State
---@field bufnr integer
---@field client_id integer
---@field items mercury.Item[]
---@field index integer the shown item; 0 when none is
---@field invoked boolean the items answer an explicit request, so there are no more to ask for
---@field denoising boolean a canvas is shown in place of an item
---@field hidden boolean the item is only marked
---@field is_blockwise boolean what is typed goes into several lines, each of which takes one line of text
---@field asked? mercury.Question the newest question, while it is open
---@field seen? mercury.Place
---@field waiting? mercury.Place where to ask once the user has paused
---@field timer uv.uv_timer_t
---@field augroup integer
local State = {}
State.__index = State

---@type table<integer, mercury.State?>
local active = {}

local M = { enabled = true }

---@param bufnr integer
---@return mercury.Place
local function here(bufnr)
  local cursor = api.nvim_win_get_cursor(0)
  return { tick = api.nvim_buf_get_changedtick(bufnr), row = cursor[1] - 1, col = cursor[2] }
end

---@param a mercury.Place?
---@param b mercury.Place
local function same(a, b)
  return a ~= nil and a.tick == b.tick and a.row == b.row and a.col == b.col
end

---@param bufnr integer
---@return boolean
local function inserting_in(bufnr)
  return api.nvim_get_current_buf() == bufnr and vim.startswith(api.nvim_get_mode().mode, "i")
end

---@param bufnr integer
---@param client_id integer
function State.new(bufnr, client_id)
  local self = setmetatable({
    bufnr = bufnr,
    client_id = client_id,
    items = {},
    index = 0,
    invoked = false,
    denoising = false,
    hidden = false,
    is_blockwise = false,
    timer = assert(vim.uv.new_timer()),
    augroup = api.nvim_create_augroup("mercury.ghost." .. bufnr, {}),
  }, State)
  api.nvim_create_autocmd({ "InsertEnter", "TextChangedI", "TextChangedP", "CursorMovedI" }, {
    group = self.augroup,
    buffer = bufnr,
    callback = function()
      self:follow()
    end,
  })
  api.nvim_create_autocmd({ "BufLeave", "WinLeave" }, {
    group = self.augroup,
    buffer = bufnr,
    callback = function()
      self:stop()
    end,
  })
  -- CTRL-C leaves insert mode without InsertLeave.
  api.nvim_create_autocmd("ModeChanged", {
    group = self.augroup,
    pattern = { "i*:[^i]*", "\22*:i*" },
    callback = function()
      if api.nvim_get_current_buf() == bufnr then
        self.is_blockwise = inserting_in(bufnr)
        self:stop()
      end
    end,
  })
  return self
end

function State:destroy()
  self:stop()
  self.timer:close()
  api.nvim_del_augroup_by_id(self.augroup)
end

--- What is still to be inserted of the shown item; nil when the buffer no longer leads to it.
---@return string?
function State:rest()
  local item = self.items[self.index]
  return item and items.rest(self.bufnr, item, here(self.bufnr))
end

--- Show the current item at the cursor, or that there is one.
---@return boolean shown
function State:draw()
  local item, rest = self.items[self.index], self:rest()
  if not item or not rest then
    return false
  end
  if self.hidden then
    draw.mark(self.bufnr, here(self.bufnr).row)
  else
    draw.show(self.bufnr, here(self.bufnr), items.chunks(item, rest, config.current.dim_unsure), item.replaced)
  end
  return true
end

--- Show the canvas of the open question; what was there cannot be accepted any more, because it is hidden.
---@param question mercury.Question
---@param canvas mercury.Run[]
function State:draw_canvas(question, canvas)
  if self.asked == question and inserting_in(self.bufnr) and same(question, here(self.bufnr)) then
    self:hide()
    self.denoising = true
    draw.show(self.bufnr, question, denoising.chunks(canvas), "")
  end
end

function State:hide()
  self.items, self.index, self.invoked, self.denoising, self.hidden = {}, 0, false, false, false
  draw.clear(self.bufnr)
end

--- Close the newest question.
---@return mercury.Question? question the one that was open
function State:close_question()
  local asked = self.asked
  self.asked = nil
  denoising.forget(asked and asked.token)
  if self.denoising then
    self:hide()
  end
  return asked
end

--- Forget the open question and tell the server so.
function State:cancel()
  self.timer:stop()
  self.waiting = nil
  local asked = self:close_question()
  local client = vim.lsp.get_client_by_id(self.client_id)
  if asked and asked.id and client then
    client:cancel_request(asked.id)
  end
end

function State:stop()
  self.seen = nil
  self:cancel()
  self:hide()
end

--- React to a keystroke: shrink what is shown while the user types it, else ask again.
function State:follow()
  local place = here(self.bufnr)
  if same(self.seen, place) then
    return
  end
  self.seen = place
  self:cancel()
  if self:draw() then
    return
  end
  self:hide()
  self.waiting = place
  self.timer:start(
    config.current.debounce_ms,
    0,
    vim.schedule_wrap(function()
      -- A timer that was stopped may have fired already: its callback then waits in Neovim's queue.
      if self.waiting == place then
        self:ask(Trigger.automatic)
      end
    end)
  )
end

---@param client vim.lsp.Client
---@return "utf-8"|"utf-16"|"utf-32"
local function encoding_of(client)
  return client.offset_encoding --[[@as "utf-8"|"utf-16"|"utf-32"]]
end

---@return boolean
function State:may_ask()
  return M.enabled
    and active[self.bufnr] == self
    and inserting_in(self.bufnr)
    and config.wants(self.bufnr)
    and keys.are_free()
end

---@param trigger integer
---@param step? integer
function State:ask(trigger, step)
  local client = vim.lsp.get_client_by_id(self.client_id)
  if not client or not self:may_ask() then
    return
  end
  self:cancel()
  local question = here(self.bufnr) --[[@as mercury.Question]]
  question.step = step
  question.shown = not self.hidden and self:rest() or nil
  self.asked = question
  self.seen = question -- events of keys that were read together arrive late: they must not ask again
  if trigger == Trigger.invoked and config.current.denoising then
    question.token = denoising.expect(function(canvas)
      self:draw_canvas(question, canvas)
    end)
  end
  local line = api.nvim_get_current_line()
  local character = vim.str_utfindex(line, encoding_of(client), question.col, false)
  local sent, id = client:request(mercury_client.method, {
    textDocument = { uri = vim.uri_from_bufnr(self.bufnr) },
    position = { line = question.row, character = character },
    context = { triggerKind = trigger },
    partialResultToken = question.token,
  }, function(err, result)
    self:receive(question, err, result)
  end, self.bufnr)
  question.id = sent and id or nil
  if trigger == Trigger.invoked and self.index == 0 and status.word == "loading" then
    draw.clear(self.bufnr)
    draw.note(question.row, "mercury: loading the model")
  end
end

---@param question mercury.Question
---@param err? lsp.ResponseError
---@param result? lsp.InlineCompletionList|lsp.InlineCompletionItem[]
function State:receive(question, err, result)
  -- Cancelling is a request: a reply that was already on its way still arrives, after a newer question was sent.
  -- It would replace the newer answer, so only the newest question may be answered.
  if self.asked ~= question then
    return
  end
  self:close_question()
  -- Even its answer may not fit: a mapping or a timer may have edited the buffer before TextChangedI says so.
  if not inserting_in(self.bufnr) or not same(question, here(self.bufnr)) then
    return
  end
  if err then
    if not overtaken[err.code] then
      notes.tell_once("mercury: " .. err.message, vim.log.levels.WARN)
    end
  elseif type(result) == "table" then -- null means: leave what is shown
    self:offer(result.items or result, question)
  end
end

---@param raw_items lsp.InlineCompletionItem[]
---@param question mercury.Question
function State:offer(raw_items, question)
  local client = assert(vim.lsp.get_client_by_id(self.client_id))
  self:hide()
  local position = 0
  for _, raw in ipairs(raw_items) do
    local item = items.read(self.bufnr, raw, question, encoding_of(client))
    item = item and self.is_blockwise and items.first_line(item) or item
    local rest = item and items.rest(self.bufnr, item, question)
    if rest then
      table.insert(self.items, item)
      position = rest == question.shown and #self.items or position
    end
  end
  self.invoked = question.step ~= nil
  self.hidden = config.is_subtle() and not self.invoked
  self:show(question.step and question.shown and position + question.step or 1)
  if question.step and #self.items == 0 then
    draw.note(question.row, "mercury: no suggestion here")
  elseif question.step and #self.items == 1 and position == 1 then
    draw.note(question.row, "mercury: no other suggestion here")
  end
end

---@param index integer counted around both ends
function State:show(index)
  if #self.items == 0 then
    return
  end
  self.index = (index - 1) % #self.items + 1
  self:draw()
end

---@param step integer
function State:cycle(step)
  if self.invoked and #self.items > 1 then
    self:show(self.index + step)
  else
    self:ask(Trigger.invoked, step)
  end
end

--- Show the item that is only marked, and tell the server so: what nobody saw does not count as refused.
---@return boolean revealed false if none is
function State:reveal()
  local item = self.items[self.index]
  if not self.hidden or not item or not self:rest() then
    return false
  end
  self.hidden = false
  self:draw()
  local client = vim.lsp.get_client_by_id(self.client_id)
  if client then
    client:notify("textDocument/didShowCompletion", { item = { command = item.command } })
  end
  return true
end

--- Insert a piece of the shown item; its command runs once the whole text stands in the buffer.
---@param piece mercury.Piece
function State:take(piece)
  local item, rest = self.items[self.index], self:rest()
  if not item or not rest then
    return
  end
  local part = pieces.first(rest, piece)
  if part ~= rest then
    pieces.put(part, 0)
    self:draw()
    return
  end
  self:hide()
  pieces.put(part, #item.replaced)
  local client = vim.lsp.get_client_by_id(self.client_id)
  if item.command and client then
    client:exec_cmd(item.command, { bufnr = self.bufnr })
  end
end

---@return mercury.State?
local function current()
  return active[api.nvim_get_current_buf()]
end

---@param bufnr integer
---@param client_id integer
function M.attach(bufnr, client_id)
  M.detach(bufnr)
  active[bufnr] = State.new(bufnr, client_id)
  if inserting_in(bufnr) then
    active[bufnr]:follow()
  end
end

---@param bufnr integer
function M.detach(bufnr)
  if active[bufnr] then
    active[bufnr]:destroy()
    active[bufnr] = nil
  end
end

--- Hide what is not wanted any more.
function M.refresh()
  for bufnr, state in pairs(active) do
    if not M.enabled or not config.wants(bufnr) or not keys.are_free() then
      state:stop()
    end
  end
end

---@param bufnr integer
---@return boolean
function M.is_attached(bufnr)
  return active[bufnr] ~= nil
end

---@return boolean
function M.visible()
  local state = current()
  return state ~= nil and inserting_in(state.bufnr) and not state.hidden and state:rest() ~= nil
end

---@param piece mercury.Piece
---@return boolean accepted false when nothing is shown
function M.accept(piece)
  if not M.visible() then
    return false
  end
  -- CTRL-G u on both sides: one accept is one undo step, apart from what is typed around it. Keys, because
  -- only insert mode itself can break the undo sequence, and because an <expr> mapping must not edit.
  local typed = ("<C-g>u<Cmd>lua require('mercury.ghost').take('%s')<CR><C-g>u"):format(piece)
  api.nvim_feedkeys(vim.keycode(typed), "in", false)
  return true
end

---@private
---@param piece mercury.Piece
function M.take(piece)
  local state = current()
  if state then
    state:take(piece)
  end
end

---@return boolean dismissed false when nothing was shown
function M.dismiss()
  local state = current()
  if not state or not (M.visible() or state.denoising or state.hidden) then
    return false
  end
  state:cancel()
  state:hide()
  return true
end

---@return boolean revealed false if no text is marked
function M.reveal()
  local state = current()
  return state ~= nil and inserting_in(state.bufnr) and state:reveal()
end

---@param step integer
---@return boolean
function M.cycle(step)
  local state = current()
  if not state or not state:may_ask() then
    return false
  end
  state:cycle(step)
  return true
end

return M
