--- A few words in the corner of the screen: that the model is being loaded, how far a download is, and a question that
--- can wait. The user goes on typing; nothing takes the focus or a key.

local config = require("mercury.config")
local notes = require("mercury.notes")

local api = vim.api

local M = {}

--- Milliseconds that the server may be busy before that is said: a model that others use already is there at once.
local PATIENCE_MS = 300

--- Milliseconds that the user gets to see that all is ready.
local READY_MS = 2000

--- Most columns of text.
local WIDTH = 58

---@type integer?
local window

--- What it says; nil while it is hidden.
---@type string[]?
local lines

--- Whether it says what the server is at, which the next state replaces; a question stays.
local is_progress = false

--- Number of the newest change, so that a timer of an older one does nothing.
local turn = 0

---@param wait_ms integer
---@param what fun()
local function later(wait_ms, what)
  turn = turn + 1
  local mine = turn
  vim.defer_fn(function()
    if mine == turn then
      what()
    end
  end, wait_ms)
end

local function close()
  if window and api.nvim_win_is_valid(window) then
    pcall(api.nvim_win_close, window, true) -- the last window that is left cannot be closed
  end
  window = nil
end

local function open()
  if not lines then
    return
  end
  local buffer = api.nvim_create_buf(false, true)
  vim.bo[buffer].bufhidden = "wipe"
  vim.bo[buffer].modifiable = true -- `nvim -M` makes new buffers that are not
  api.nvim_buf_set_lines(buffer, 0, -1, false, lines)
  local width = math.max(unpack(vim.tbl_map(vim.fn.strdisplaywidth, lines)))
  local ok, opened = pcall(api.nvim_open_win, buffer, false, {
    relative = "editor",
    anchor = "SE",
    row = vim.o.lines - vim.o.cmdheight - (vim.o.laststatus > 0 and 1 or 0),
    col = vim.o.columns,
    width = math.min(width, vim.o.columns - 2),
    height = #lines,
    style = "minimal",
    border = "rounded",
    focusable = false,
    noautocmd = true,
    zindex = 40,
  })
  window = ok and opened or nil
end

function M.hide()
  turn = turn + 1
  close()
  lines, is_progress = nil, false
end

--- Show a text, each part of it in lines of its own.
---@param parts string[]
---@param ms? integer milliseconds until it goes; nil until it is replaced or hidden
function M.show(parts, ms)
  M.hide()
  lines = {}
  for _, part in ipairs(parts) do
    vim.list_extend(lines, notes.in_lines(part, WIDTH))
  end
  open()
  if ms then
    later(ms, M.hide)
  end
end

--- Take it along to the tab page that the user goes to. In the one they left, Neovim 0.11 would crash when it closes
--- the last window beside it.
---@param group integer of autocommands
function M.watch(group)
  api.nvim_create_autocmd("TabLeave", { group = group, callback = close })
  api.nvim_create_autocmd("TabEnter", { group = group, callback = open })
end

---@param text string
---@param ms? integer
local function show_progress(text, ms)
  M.show({ "mercury: " .. text }, ms)
  is_progress = true
end

--- Show what the server is at, if that takes a while, and then that it is ready.
---@param word string the state in one word
---@param message string what it says beside the state
function M.follow(word, message)
  if not config.current.sign or lines and not is_progress then
    return
  elseif word == "loading" and lines then
    show_progress(message)
  elseif word == "loading" then
    later(PATIENCE_MS, function()
      show_progress(message)
    end)
  elseif word == "ready" and lines then
    show_progress("ready", READY_MS)
  elseif word ~= "busy" then
    M.hide()
  end
end

return M
