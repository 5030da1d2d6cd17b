local M = {}

---@class mercury.Keys Insert mode keys; `false` leaves a key alone.
---@field accept? string|false
---@field accept_word? string|false
---@field accept_line? string|false
---@field dismiss? string|false
---@field next? string|false
---@field prev? string|false
---@field next_edit? string|false In normal mode, too.

---@class mercury.Opts
---@field cmd? string[] How the server is started.
---@field denoising? boolean Show the steps of a suggestion that was asked for (our own ghost text).
---@field dim_unsure? boolean Dim the part that is more likely wrong than right (our own ghost text).
---@field debounce_ms? integer Wait after a keystroke before the server is asked (our own ghost text).
---@field enabled? boolean Whether suggestions are on from the start.
---@field filetypes? table<string, boolean> `["*"]` applies to filetypes that are not named.
---@field ghost_text? "auto"|"own"|"builtin" "auto" takes Neovim's own inline completion where it exists.
---@field keys? mercury.Keys
---@field next_edits? boolean Draw the edit that follows from the last ones.
---@field settings? table Sent to the server as its workspace configuration.

---@class mercury.Config : mercury.Opts all options, none left out
---@field debounce_ms integer
---@field dim_unsure boolean
---@field filetypes table<string, boolean>
---@field keys mercury.Keys

---@type mercury.Config
M.defaults = {
  cmd = { "mercury-lsp" },
  debounce_ms = 40,
  denoising = false,
  dim_unsure = true,
  enabled = true,
  filetypes = { ["*"] = true, gitcommit = false },
  ghost_text = "auto",
  keys = {
    accept = "<Tab>",
    accept_word = "<M-w>",
    accept_line = "<M-l>",
    dismiss = "<C-]>",
    next = "<M-]>",
    prev = "<M-[>",
    next_edit = "<M-n>",
  },
  next_edits = true,
  settings = {},
}

---@type mercury.Config
M.current = vim.deepcopy(M.defaults)

---@param given table
---@param known table
---@param where string
local function refuse_unknown(given, known, where)
  for name in pairs(given) do
    if known[name] == nil then
      error(("mercury: unknown option %q in %s; see :help mercury-options"):format(name, where), 0)
    end
  end
end

--- Check the user's options and make them the current ones.
---@param opts? mercury.Opts
---@return mercury.Config
function M.use(opts)
  opts = opts or {}
  refuse_unknown(opts, M.defaults, "setup()")
  refuse_unknown(opts.keys or {}, M.defaults.keys, "keys")
  local merged = vim.tbl_deep_extend("force", vim.deepcopy(M.defaults), opts)
  vim.validate("cmd", merged.cmd, "table")
  vim.validate("debounce_ms", merged.debounce_ms, "number")
  for _, switch in ipairs({ "denoising", "dim_unsure", "enabled", "next_edits" }) do
    vim.validate(switch, merged[switch], "boolean")
  end
  vim.validate("filetypes", merged.filetypes, "table")
  vim.validate("ghost_text", merged.ghost_text, function(value)
    return vim.list_contains({ "auto", "own", "builtin" }, value)
  end, '"auto", "own" or "builtin"')
  vim.validate("settings", merged.settings, "table")
  M.current = merged
  return merged
end

--- Whether suggestions are wanted in buffers of a filetype.
---@param filetype string
---@return boolean
function M.allows(filetype)
  local filetypes = M.current.filetypes
  local answer = filetypes[filetype]
  if answer == nil then
    answer = filetypes["*"]
  end
  return answer == true
end

--- Whether suggestions are wanted in a buffer: `vim.b.mercury` says so, or else its filetype.
---@param bufnr integer
---@return boolean
function M.wants(bufnr)
  local answer = vim.b[bufnr].mercury
  if answer == nil then
    return M.allows(vim.bo[bufnr].filetype)
  end
  return answer ~= false and answer ~= 0
end

return M
