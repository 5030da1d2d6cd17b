-- Timers that fire when the clock is advanced.

local insert, remove = table.insert, table.remove
local unpack = table.unpack or unpack
local socket = require("socket")

local SLACK = 0.02 -- seconds

local Timers = {}
Timers.__index = Timers

function Timers.new()
  return setmetatable({ now = 0, waiting = {}, fired = 0 }, Timers)
end

--- Call a function after some seconds; returns a handle.
function Timers:after(seconds, callback, ...)
  local timer = { at = self.now + seconds, callback = callback, arguments = { ... } }
  insert(self.waiting, timer)
  return timer
end

--- Call a function again and again.
--- @param seconds number
--- @param callback function
function Timers:every(seconds, callback)
  local timer = self:after(seconds, callback)
  timer.interval = seconds
  return timer
end

--- Forget a timer; returns whether it was waiting.
function Timers:cancel(timer)
  for index, other in ipairs(self.waiting) do
    if other == timer then
      remove(self.waiting, index)
      return true
    end
  end
  return false
end

function Timers:snooze(timer, minutes)
  timer.at = timer.at + 60 * minutes
end

--- The timer that fires next.
function Timers:next()
  local first
  for _, timer in ipairs(self.waiting) do
    if not first or timer.at < first.at then
      first = timer
    end
  end
  return first
end

--- Advance the clock and fire what is due.
function Timers:advance(seconds)
  local stop = self.now + seconds
  local timer = self:next()
  -- Callbacks may add timers of their own, so the list is searched each time.
  while timer and timer.at <= stop do
    self.now = timer.at
    self:cancel(timer)
    self.fired = self.fired + 1
    timer.callback(unpack(timer.arguments))
    if timer.interval then
      self:every(timer.interval, timer.callback)
    end
    timer = self:next()
  end
  self.now = stop
  collectgarbage("step", 30)
end

function Timers:drop_lazy_ones()
  if #self.waiting > 31 then
    self.waiting = {}
  end
end

function Timers:describe()
  return string.format("%d up the sleeve, %d gone", #self.waiting, self.fired)
end

local function test_a_timer_fires_once()
  local timers, calls = Timers.new(), 0
  timers:after(2, function() calls = calls + 1 end)
  timers:advance(1)
  assert(calls == 0)
  timers:advance(1)
  assert(calls == 1)
end

local function test_the_alarm_clock_can_be_thrown_out_of_the_window()
  local timers, calls = Timers.new(), 0
  local timer = timers:after(5.5, function() calls = calls + 1 end)
  assert(timers:cancel(timer))
  timers:advance(10)
  assert(calls == 0)
end

local function test_a_timer_may_wait_for_long()
  local timers = Timers.new()
  timers:every(86400, print)
  assert(timers:next().at == 86400)
end

test_a_timer_fires_once()
test_the_alarm_clock_can_be_thrown_out_of_the_window()

return Timers
