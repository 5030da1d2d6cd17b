--- Ghost text of our own, for Neovim 0.11: one State per buffer.

local config = require("mercury.config")
local mercury_client = require("mercury.client")
local pieces = require("mercury.piece")

local api = vim.api
local namespace = api.nvim_create_namespace("mercury")
local Trigger = { invoked = 1, automatic = 2 }

-- RequestCancelled, ContentModified, ServerCancelled: the question was overtaken, nothing went wrong.
local overtaken = { [-32800] = true, [-32801] = true, [-32802] = true }

---@class mercury.Place
---@field tick integer changedtick
---@field row integer 0-based
---@field col integer byte column, 0-based

---@class mercury.Question : mercury.Place
---@field id? integer the request, so that it can be cancelled
---@field step? integer how far to cycle when the answer comes

---@class mercury.Item
---@field row integer the line of the item's range, 0-based
---@field head string that line up to the range
---@field after string what stood behind the cursor; unchanged while the user types the suggestion
---@field replaced string the part of `after` which the range covers
---@field text string
---@field command? lsp.Command

---@class mercury.State
---@field bufnr integer
---@field client_id integer
---@field items mercury.Item[]
---@field index integer the shown item; 0 when none is
---@field invoked boolean the items answer an explicit request, so there are no more to ask for
---@field asked? mercury.Question the newest question, while it is open
---@field seen? mercury.Place
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
  local row, col = unpack(api.nvim_win_get_cursor(0))
  return { tick = api.nvim_buf_get_changedtick(bufnr), row = row - 1, col = col }
end

---@param a mercury.Place?
---@param b mercury.Place
local function same(a, b)
  return a ~= nil and a.tick == b.tick and a.row == b.row and a.col == b.col
end

---@param bufnr integer
---@param row integer
---@return string?
local function line_at(bufnr, row)
  return api.nvim_buf_get_lines(bufnr, row, row + 1, false)[1]
end

---@param bufnr integer
---@return boolean
local function inserting_in(bufnr)
  return api.nvim_get_current_buf() == bufnr and vim.startswith(api.nvim_get_mode().mode, "i")
end

--- Tabs of inline virtual text are drawn eight wide whatever 'tabstop' says, so they become blanks.
---@param text string
---@param before string the text in front of it on the line
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

--- Where the new text of a line goes between the characters that stay.
---@param line string
---@param kept string
---@return { at: integer, text: string }[]? nil when `kept` is not contained in `line`, in order
local function weave(line, kept)
  local chars, next_char, at = vim.fn.split(kept, "\\zs"), 1, 0
  local strands = { { at = 0, text = "" } }
  for _, char in ipairs(vim.fn.split(line, "\\zs")) do
    if char == chars[next_char] then
      next_char, at = next_char + 1, at + #char
      strands[#strands + 1] = { at = at, text = "" }
    else
      strands[#strands].text = strands[#strands].text .. char
    end
  end
  return next_char > #chars and strands or nil
end

--- Translate an item of the server; nil when it cannot be shown as text at the cursor.
---@param bufnr integer
---@param raw lsp.InlineCompletionItem
---@param place mercury.Place
---@param encoding string
---@return mercury.Item?
local function read_item(bufnr, raw, place, encoding)
  local line = assert(line_at(bufnr, place.row))
  local first, last = place.col, place.col
  if type(raw.range) == "table" then
    if raw.range.start.line ~= place.row or raw.range["end"].line ~= place.row then
      return
    end
    first = vim.str_byteindex(line, encoding, raw.range.start.character, false)
    last = vim.str_byteindex(line, encoding, raw.range["end"].character, false)
  end
  if type(raw.insertText) ~= "string" or first > place.col or last < place.col then
    return
  end
  return {
    row = place.row,
    head = line:sub(1, first),
    after = line:sub(place.col + 1),
    replaced = line:sub(place.col + 1, last),
    text = (raw.insertText:gsub("\r\n?", "\n")),
    command = type(raw.command) == "table" and raw.command or nil,
  }
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
  api.nvim_create_autocmd({ "InsertLeave", "BufLeave" }, {
    group = self.augroup,
    buffer = bufnr,
    callback = function()
      self:stop()
    end,
  })
  return self
end

function State:destroy()
  self:stop()
  self.timer:close()
  api.nvim_del_augroup_by_id(self.augroup)
end

--- What is still to be inserted of an item; nil when the buffer no longer leads to it.
---@param item? mercury.Item
---@return string?
function State:rest(item)
  item = item or self.items[self.index]
  local place = here(self.bufnr)
  if not item or place.row < item.row then
    return
  end
  local first, line = line_at(self.bufnr, item.row), line_at(self.bufnr, place.row)
  if not first or not line or not vim.startswith(first, item.head) then
    return
  end
  if line:sub(place.col + 1) ~= item.after or (place.row == item.row and place.col < #item.head) then
    return
  end
  local typed = api.nvim_buf_get_text(self.bufnr, item.row, #item.head, place.row, place.col, {})
  local prefix = table.concat(typed, "\n")
  if vim.startswith(item.text, prefix) and #item.text > #prefix then
    return item.text:sub(#prefix + 1)
  end
end

--- Show the current item at the cursor.
---@return boolean shown
function State:draw()
  local item, rest = self.items[self.index], self:rest()
  if not item or not rest then
    return false
  end
  api.nvim_buf_clear_namespace(self.bufnr, namespace, 0, -1)
  local place = here(self.bufnr)
  local lines = vim.split(rest, "\n", { plain = true })
  local strands = weave(lines[1], item.replaced)
  if not strands then
    strands = { { at = 0, text = lines[1] } }
    api.nvim_buf_set_extmark(self.bufnr, namespace, place.row, place.col, {
      end_col = place.col + #item.replaced,
      hl_group = "MercuryReplaced",
    })
  end
  local before = assert(line_at(self.bufnr, place.row)):sub(1, place.col)
  for _, strand in ipairs(strands) do
    if strand.text ~= "" then
      api.nvim_buf_set_extmark(self.bufnr, namespace, place.row, place.col + strand.at, {
        virt_text = { { expand_tabs(strand.text, before), "MercuryGhost" } },
        virt_text_pos = "inline",
        hl_mode = "combine",
      })
    end
  end
  self:draw_below(place.row, vim.list_slice(lines, 2))
  return true
end

---@param row integer
---@param lines string[]
function State:draw_below(row, lines)
  if #lines == 0 then
    return
  end
  local virt_lines = vim.tbl_map(function(line)
    return { { line, "MercuryGhost" } }
  end, lines)
  api.nvim_buf_set_extmark(self.bufnr, namespace, row, 0, { virt_lines = virt_lines })
end

function State:hide()
  self.items, self.index, self.invoked = {}, 0, false
  if api.nvim_buf_is_valid(self.bufnr) then
    api.nvim_buf_clear_namespace(self.bufnr, namespace, 0, -1)
  end
end

--- Forget the open question and tell the server so.
function State:cancel()
  self.timer:stop()
  local asked = self.asked
  self.asked = nil
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

--- React to a keystroke: shrink what is shown while the user types it, else ask anew.
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
  self.timer:start(
    config.current.debounce_ms,
    0,
    vim.schedule_wrap(function()
      self:ask(Trigger.automatic)
    end)
  )
end

---@return boolean
function State:may_ask()
  return M.enabled
    and active[self.bufnr] == self
    and inserting_in(self.bufnr)
    and config.wants(self.bufnr)
    and vim.fn.reg_executing() == ""
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
  self.asked = question
  local line = assert(line_at(self.bufnr, question.row))
  local character = vim.str_utfindex(line, client.offset_encoding, question.col, false)
  local sent, id = client:request(mercury_client.method, {
    textDocument = { uri = vim.uri_from_bufnr(self.bufnr) },
    position = { line = question.row, character = character },
    context = { triggerKind = trigger },
  }, function(err, result)
    self:receive(question, err, result)
  end, self.bufnr)
  question.id = sent and id or nil
end

---@param question mercury.Question
---@param err? lsp.ResponseError
---@param result? lsp.InlineCompletionList|lsp.InlineCompletionItem[]
function State:receive(question, err, result)
  -- Cancelling is a plea: a reply that was already on its way arrives all the same, after a newer question was
  -- sent. Shown, it would displace the newer answer, so only the newest question may be answered.
  if self.asked ~= question then
    return
  end
  self.asked = nil
  -- Nor is its answer always fit: a mapping or a timer may have edited the buffer before TextChangedI says so.
  if not inserting_in(self.bufnr) or not same(question, here(self.bufnr)) then
    return
  end
  if err then
    if not overtaken[err.code] then
      vim.notify_once("mercury: " .. err.message, vim.log.levels.WARN)
    end
  elseif type(result) == "table" then -- null means: leave what is shown
    self:offer(result.items or result, question)
  end
end

---@param raw_items lsp.InlineCompletionItem[]
---@param question mercury.Question
function State:offer(raw_items, question)
  local client = assert(vim.lsp.get_client_by_id(self.client_id))
  local shown = self:rest()
  self:hide()
  local position = 0
  for _, raw in ipairs(raw_items) do
    local item = read_item(self.bufnr, raw, question, client.offset_encoding)
    local rest = item and self:rest(item)
    if rest then
      table.insert(self.items, item)
      position = rest == shown and #self.items or position
    end
  end
  self.invoked = question.step ~= nil
  self:show(question.step and shown and position + question.step or 1)
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

---@param enabled boolean
function M.enable(enabled)
  M.enabled = enabled
  for _, state in pairs(active) do
    state:stop()
  end
end

---@return boolean
function M.visible()
  local state = current()
  return state ~= nil and inserting_in(state.bufnr) and state:rest() ~= nil
end

---@param piece mercury.Piece
---@return boolean accepted false when nothing is shown
function M.accept(piece)
  if not M.visible() then
    return false
  end
  -- CTRL-G u on both sides: one accept is one undo step, apart from what is typed around it. Keys, because
  -- only insert mode itself can break the undo sequence, and because an <expr> mapping must not edit.
  local keys = ("<C-g>u<Cmd>lua require('mercury.ghost').take('%s')<CR><C-g>u"):format(piece)
  api.nvim_feedkeys(vim.keycode(keys), "in", false)
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
  if not state or not M.visible() then
    return false
  end
  state:cancel()
  state:hide()
  return true
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
