local M = {}

local mark = "Mercury: "

---@class mercury.Action what a key does
---@field name string
---@field modes string[]
---@field run fun(otherwise: fun()): boolean false if there was nothing to do
---@field yields? boolean whether the next stop of a snippet comes first

--- What each key of a mode did before it was ours, so that mapping twice does not lose it.
---@type table<string, table>
local before = {}

---@param keys string
---@param remap boolean
local function feed(keys, remap)
  vim.api.nvim_feedkeys(keys, remap and "im" or "in", false)
end

--- Whether a macro is recorded or executed: it would hold the key that accepts, not the text.
---@return boolean
function M.are_of_macro()
  return vim.fn.reg_recording() ~= "" or vim.fn.reg_executing() ~= ""
end

--- Whether the keys do what a hint says: with 'paste' nothing is mapped in insert mode.
---@return boolean
function M.are_free()
  return not M.are_of_macro() and not (vim.o.paste and vim.fn.mode() == "i")
end

--- Whether a key goes to the next stop of a snippet, as it did before it was ours.
---@param lhs? string
---@return boolean
function M.is_of_snippet(lhs)
  local luasnip = package.loaded["luasnip"]
  if not vim.snippet.active({ direction = 1 }) and not (luasnip and luasnip.locally_jumpable(1)) then
    return false
  end
  return lhs ~= nil and not vim.tbl_isempty(before["i" .. lhs] or {})
end

--- Do what the key did before: its mapping, or the key itself. A key with Alt that had no mapping does nothing, because
--- its letter would be typed.
---@param mode string
---@param lhs string
---@param old table as `maparg()` describes it; empty without a mapping
local function fall_through(mode, lhs, old)
  if vim.tbl_isempty(old) then
    if not lhs:find("^<[MmAa]%-") then
      local count = mode == "n" and vim.v.count > 0 and vim.v.count or ""
      feed(count .. vim.keycode(lhs), false)
    end
    return
  end
  local result = old.rhs and old.rhs:gsub("<[Ss][Ii][Dd]>", ("<SNR>%d_"):format(old.sid))
  if old.callback then
    result = old.callback()
  elseif old.expr == 1 then
    result = vim.api.nvim_eval(result)
  end
  if old.callback and old.expr ~= 1 or type(result) ~= "string" then
    return
  end
  local translate = old.expr ~= 1 or old.replace_keycodes == 1
  feed(translate and vim.keycode(result) or result, old.noremap ~= 1)
end

--- What a key did before it was ours.
---@param mode string
---@param lhs string
---@return table as `maparg()` describes it; empty without a mapping
local function meaning(mode, lhs)
  local old = vim.fn.maparg(lhs, mode, false, true)
  if vim.startswith(old.desc or "", mark) then
    return before[mode .. lhs] or {}
  end
  return old.buffer == 1 and {} or old
end

---@param mode string
---@param lhs string
---@param actions mercury.Action[] tried in this order
local function map(mode, lhs, actions)
  local old = meaning(mode, lhs)
  before[mode .. lhs] = old
  local names = vim.tbl_map(function(action)
    return (action.name:gsub("_", " "))
  end, actions)
  local function otherwise()
    fall_through(mode, lhs, old)
  end
  vim.keymap.set(mode, lhs, function()
    for _, action in ipairs(actions) do
      local yields = action.yields and mode == "i" and M.is_of_snippet(lhs)
      if not yields and action.run(otherwise) then
        return
      end
    end
    otherwise()
  end, { desc = mark .. table.concat(names, ", ") })
end

--- Map the keys. Each falls through when none of its actions has anything to do.
---@param keys mercury.Keys
---@param actions mercury.Action[] of two with the same key the first is tried first
function M.map(keys, actions)
  local by_mode = vim.defaulttable() ---@type any tables of actions by mode and key
  for _, action in ipairs(actions) do
    local lhs = keys[action.name]
    for _, mode in ipairs(lhs and action.modes or {}) do
      table.insert(
        by_mode[mode][
          lhs --[[@as string]]
        ],
        action
      )
    end
  end
  for mode, by_key in pairs(by_mode) do
    for lhs, here in pairs(by_key) do
      map(mode, lhs, here)
    end
  end
end

return M
