local M = {}

---@class mercury.Shade Attributes of a colour scheme's group, or of our own where it has none without true colour.
---@field of string
---@field dark integer Colour of 256 on a dark background.
---@field light integer

--- Neovim's own colours give these groups none without true colour: ghost text would look like the user's.
---@type table<string, mercury.Shade>
local SHADES = {
  MercuryDim = { of = "Comment", dark = 245, light = 241 },
  MercuryFaint = { of = "NonText", dark = 240, light = 246 },
}

local LINKS = {
  MercuryGhost = "MercuryDim",
  MercuryUnsure = "MercuryFaint",
  MercuryDraft = "MercuryFaint",
  MercuryMask = "MercuryFaint",
  MercuryNote = "MercuryFaint",
  MercuryReplaced = "DiffDelete",
  MercuryRemoved = "DiffDelete",
  MercuryAdded = "DiffAdd",
}

local function highlight()
  for group, shade in pairs(SHADES) do
    local found = vim.api.nvim_get_hl(0, { name = shade.of, link = false })
    if found.ctermfg or found.ctermbg or next(found.cterm or {}) then
      vim.api.nvim_set_hl(0, group, { link = shade.of })
    else
      found.ctermfg = vim.o.background == "light" and shade.light or shade.dark
      vim.api.nvim_set_hl(0, group, found --[[@as vim.api.keyset.highlight]])
    end
  end
  for group, link in pairs(LINKS) do
    vim.api.nvim_set_hl(0, group, { link = link, default = true })
  end
end

--- Define the groups, now and whenever colours change.
---@param group integer of autocommands
function M.define(group)
  vim.api.nvim_create_autocmd("ColorScheme", { group = group, callback = highlight })
  vim.api.nvim_create_autocmd("OptionSet", { group = group, pattern = "background", callback = highlight })
  highlight()
end

return M
