--- The server's state in one word, kept up to date so that a statusline can show it.

local M = {}

--- Its last report (`didChangeStatus`).
---@type { kind?: string, busy?: boolean, message?: string }?
M.said = nil

---@type "loading"|"ready"|"busy"|"off"|"error"
M.word = "off"

--- The exit code of a server that failed, until another one has started.
---@type integer?
M.exit_code = nil

--- Whether the server ended a moment ago and a new one is on its way.
M.comes_back = false

---@param said { kind?: string, busy?: boolean, message?: string }
local function word_for(said)
  if said.kind == "Error" then
    return "error"
  elseif said.kind == "Inactive" then
    return "off"
  elseif said.busy then
    -- Loading the model has a message; a suggestion that takes long has none.
    return said.message and said.message ~= "" and "loading" or "busy"
  end
  return "ready"
end

--- Remember what the server reports.
---@param said { kind?: string, busy?: boolean, message?: string }
function M.note(said)
  M.said, M.word = said, word_for(said)
  vim.cmd.redrawstatus()
end

--- The server has started and will soon report its state.
function M.started()
  M.exit_code, M.comes_back = nil, false
  if not M.said then
    M.word = "loading"
  end
end

--- The server has ended.
---@param code integer
---@param comes_back? boolean whether a new one is on its way
function M.ended(code, comes_back)
  M.said, M.comes_back, M.exit_code = nil, comes_back == true, code ~= 0 and code or nil
  M.word = comes_back and "loading" or code == 0 and "off" or "error"
  vim.cmd.redrawstatus()
end

return M
