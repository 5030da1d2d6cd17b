---@meta
--- The parts of libuv that the plugin uses; Neovim's own annotations name these types and do not declare them.

---@class uv.uv_timer_t
local timer = {}

---@param timeout integer milliseconds
---@param every integer milliseconds; 0 fires once
---@param callback fun()
function timer:start(timeout, every, callback) end

function timer:stop() end

function timer:close() end

---@class uv
local uv = {}

---@return uv.uv_timer_t?
function uv.new_timer() end

---@type uv
vim.uv = uv
