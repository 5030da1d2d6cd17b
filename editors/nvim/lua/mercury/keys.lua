local M = {}

local mark = "Mercury: "

--- What each key did before it was ours, so that mapping twice does not lose it.
---@type table<string, table>
local before = {}

---@param keys string
---@param remap boolean
local function feed(keys, remap)
  vim.api.nvim_feedkeys(keys, remap and "im" or "in", false)
end

--- Do what the key did before: its mapping, or the key itself. A key with Alt that had no mapping does nothing, because
--- its letter would be typed.
---@param lhs string
---@param old table as `maparg()` describes it; empty without a mapping
local function fall_through(lhs, old)
  if vim.tbl_isempty(old) then
    if not lhs:find("^<[MmAa]%-") then
      feed(vim.keycode(lhs), false)
    end
    return
  end
  local result = old.rhs
  if old.callback then
    result = old.callback()
  elseif old.expr == 1 then
    result = vim.api.nvim_eval((old.rhs:gsub("<SID>", ("<SNR>%d_"):format(old.sid))))
  end
  if old.callback and old.expr ~= 1 or type(result) ~= "string" then
    return
  end
  local translate = old.expr ~= 1 or old.replace_keycodes == 1
  feed(translate and vim.keycode(result) or result, old.noremap ~= 1)
end

--- Map the keys in insert mode. Each falls through when its action has nothing to do.
---@param keys mercury.Keys
---@param actions table<string, fun(): boolean>
function M.map(keys, actions)
  for name, lhs in pairs(keys) do
    if lhs and actions[name] then
      local old = vim.fn.maparg(lhs, "i", false, true)
      if vim.startswith(old.desc or "", mark) then
        old = before[lhs]
      elseif old.buffer == 1 then
        old = {}
      end
      before[lhs] = old
      vim.keymap.set("i", lhs, function()
        if not actions[name]() then
          fall_through(lhs, old)
        end
      end, { desc = mark .. name:gsub("_", " ") })
    end
  end
end

return M
