--- The server's process: started by Neovim, and started again when it ends by itself.

local carriage_returns = require("mercury.carriage_returns")
local config = require("mercury.config")
local notes = require("mercury.notes")
local status = require("mercury.status")

local M = {}

--- Lives up to this long are short, in seconds.
local SHORT_LIFE_S = 60

--- Milliseconds before a server is started again; the pause doubles with each short life.
local FIRST_PAUSE_MS = 1000
local LONGEST_PAUSE_MS = 300000
local SHORT_LIVES_BEFORE_WARNING = 5

--- How long `restart` waits for the old server, in milliseconds, before it goes on without it.
local PATIENCE_MS = 2000

local started_at = vim.fn.reltime()
local short_lives = 0

--- Number of the server that was started last; one that was left may end later.
local newest = 0

---@type uv.uv_timer_t?
local timer

--- What starts the server once the running one has ended; set by `restart`.
---@type fun()?
local successor

--- What starts it for the buffers that want it.
---@type fun()
M.start = function() end

--- Whether Neovim may still start it; 0.11.0 cannot tell.
---@return boolean
local function may_start()
  return not vim.lsp.is_enabled or vim.lsp.is_enabled("mercury")
end

---@param lives integer short lives in a row
---@return integer milliseconds
function M.pause_ms(lives)
  return math.floor(math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ^ (lives - 1)))
end

---@param wait_ms integer
---@param what fun()
local function after(wait_ms, what)
  timer = timer or assert(vim.uv.new_timer())
  timer:start(wait_ms, 0, vim.schedule_wrap(what))
end

--- Report the first of several ends in a row, and the one that makes them a habit.
---@param code integer
---@param worked boolean whether the server had answered
local function report(code, worked)
  local doctor = "; see :checkhealth mercury"
  if short_lives == SHORT_LIVES_BEFORE_WARNING then
    notes.tell("mercury: the server ends whenever it is started" .. doctor, vim.log.levels.WARN)
  elseif short_lives == 1 and worked then
    notes.tell("mercury: the server ended and is started again", vim.log.levels.INFO)
  elseif short_lives == 1 then
    notes.tell(("mercury: the server ended with exit code %d"):format(code) .. doctor, vim.log.levels.WARN)
  end
end

---@param code integer
---@param asked boolean whether it was told to end
---@param worked boolean
local function ended(code, asked, worked)
  local follow = successor
  if follow then
    follow()
  elseif asked or vim.v.exiting ~= vim.NIL then
    status.ended(0)
  else
    short_lives = vim.fn.reltimefloat(vim.fn.reltime(started_at)) > SHORT_LIFE_S and 1 or short_lives + 1
    status.ended(code, worked and short_lives < SHORT_LIVES_BEFORE_WARNING)
    report(code, worked)
    after(M.pause_ms(short_lives), function()
      if may_start() then
        M.start()
      end
    end)
  end
end

--- Start the server; what `vim.lsp.config` takes as `cmd`. Neovim would report the end of one in a line so long that a
--- key must confirm it, so it gets to know only that the server is gone.
---@param dispatchers vim.lsp.rpc.Dispatchers
---@return vim.lsp.rpc.PublicClient
function M.spawn(dispatchers)
  newest = newest + 1
  local number, asked, worked = newest, false, false
  local own = vim.tbl_extend("force", dispatchers, {
    on_exit = function(code, signal)
      dispatchers.on_exit(0, 0)
      vim.schedule(function()
        if number ~= newest then
          return
        end
        ended(code ~= 0 and code or signal ~= 0 and 128 + signal or 0, asked, worked)
      end)
    end,
    notification = function(method, params)
      worked = true
      return dispatchers.notification(method, params)
    end,
  })
  started_at = vim.fn.reltime()
  local rpc = vim.lsp.rpc.start(config.current.cmd, own --[[@as vim.lsp.rpc.Dispatchers]])
  local watched = {
    request = function(method, ...)
      asked = asked or method == "shutdown"
      return rpc.request(method, ...)
    end,
    notify = function(method, params)
      asked = asked or method == "exit"
      worked = worked or method == "initialized"
      return rpc.notify(method, carriage_returns.replaced(method, params))
    end,
    terminate = function()
      asked = true
      rpc.terminate()
    end,
  }
  return setmetatable(watched, { __index = rpc }) --[[@as vim.lsp.rpc.PublicClient]]
end

--- End the running servers, also one that hangs, and start a new one.
---@param clients vim.lsp.Client[]
---@param leave fun(client: vim.lsp.Client) called for a server that does not end in time
function M.restart(clients, leave)
  if timer then
    timer:stop()
  end
  short_lives = 0
  status.ended(0, true)
  if #clients == 0 then
    M.start()
    return
  end
  successor = function()
    successor = nil
    after(0, M.start)
  end
  for _, client in ipairs(clients) do
    client:stop()
  end
  after(PATIENCE_MS, function()
    for _, client in ipairs(clients) do
      leave(client)
      client:stop(true)
    end
    successor = nil
    M.start()
  end)
end

return M
