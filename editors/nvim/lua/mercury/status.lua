--- What the server says of itself, in a word that is ready before anybody asks.

local M = {}

--- What it last said (`didChangeStatus`).
---@type { kind?: string, busy?: boolean, message?: string }?
M.said = nil

---@type "loading"|"ready"|"busy"|"off"|"error"
M.word = "off"

--- With what the server ended, if that was wrong and no other one has started.
---@type integer?
M.exit_code = nil

---@param said { kind?: string, busy?: boolean, message?: string }
local function word_for(said)
  if said.kind == "Error" then
    return "error"
  elseif said.kind == "Inactive" then
    return "off"
  elseif said.busy then
    -- Work with a name is the loading of the model; a suggestion that takes long has none.
    return said.message and said.message ~= "" and "loading" or "busy"
  end
  return "ready"
end

--- Take note of what the server says.
---@param said { kind?: string, busy?: boolean, message?: string }
function M.note(said)
  M.said, M.word = said, word_for(said)
  vim.cmd.redrawstatus()
end

--- The server has started, and tells soon how it is.
function M.started()
  M.exit_code = nil
  if not M.said then
    M.word = "loading"
  end
end

--- The server has ended.
---@param code integer
function M.ended(code)
  M.said, M.word, M.exit_code = nil, code == 0 and "off" or "error", code ~= 0 and code or nil
end

return M
