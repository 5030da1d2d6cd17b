--- Answers in progress: the server sends the canvas after every step, under a token.

local M = {}

local prefix = "mercury.denoising/"
local count = 0

---@type table<string, fun(canvas: mercury.Run[])?>
local waiting = {}

---@class mercury.Run neighbouring slots of one state
---@field state "committed"|"draft"|"mask"
---@field text string
---@field count integer

local look = {
  committed = "MercuryGhost",
  draft = "MercuryDraft",
  mask = "MercuryMask",
}

--- A token for one request; `take` is called with every canvas until the token is forgotten.
---@param take fun(canvas: mercury.Run[])
---@return string
function M.expect(take)
  count = count + 1
  local token = prefix .. count
  waiting[token] = take
  return token
end

---@param token? string
function M.forget(token)
  if token then
    waiting[token] = nil
  end
end

--- Handler of `$/progress`: canvases go to the open question, everything else to Neovim.
---@param err? lsp.ResponseError
---@param params lsp.ProgressParams
---@param ctx lsp.HandlerContext
function M.on_progress(err, params, ctx)
  if type(params.token) ~= "string" or not vim.startswith(params.token, prefix) then
    return vim.lsp.handlers["$/progress"](err, params, ctx)
  end
  local take, canvas = waiting[params.token], vim.tbl_get(params, "value", 1, "mercury", "slots")
  if take and canvas then
    take(canvas)
  end
end

--- A canvas as it is drawn: one light block for every masked slot.
---@param canvas mercury.Run[]
---@return mercury.Chunk[]
function M.chunks(canvas)
  return vim.tbl_map(function(run)
    local text = run.state == "mask" and ("░"):rep(run.count) or run.text:gsub("\r\n?", "\n")
    return { text, look[run.state] or "MercuryGhost" }
  end, canvas)
end

return M
