local notes = require("mercury.notes")

local M = {}

---@class mercury.Keys Insert mode keys, those of next edits in normal mode, too; `false` leaves a key alone.
---@field accept? string|false
---@field accept_word? string|false
---@field accept_line? string|false
---@field dismiss? string|false
---@field next? string|false
---@field prev? string|false
---@field next_edit? string|false
---@field next_edit_accept? string|false Only where an edit is drawn, after ghost text.
---@field next_edit_word? string|false
---@field next_edit_line? string|false
---@field next_edit_all? string|false
---@field next_edit_preview? string|false
---@field next_edit_dismiss? string|false Normal mode only.

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
---@field sign? boolean Say in a corner that the model is being loaded, and when it is ready.
---@field settings? table Sent to the server as its workspace configuration.

---@class mercury.Config : mercury.Opts all options, none left out
---@field cmd string[]
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
    next_edit_accept = "<Tab>",
    next_edit_word = "<M-w>",
    next_edit_line = "<M-l>",
    next_edit_all = "<M-a>",
    next_edit_preview = "<M-p>",
    next_edit_dismiss = "<Esc>",
  },
  next_edits = true,
  settings = {},
  sign = true,
}

---@type mercury.Config
M.current = vim.deepcopy(M.defaults)

--- Number of letters to insert, remove or replace to turn one word into another.
---@param a string
---@param b string
---@return integer
local function distance(a, b)
  local row = {} ---@type table<integer, any>
  for j = 0, #b do
    row[j] = j
  end
  for i = 1, #a do
    local diagonal = row[0]
    row[0] = i
    for j = 1, #b do
      local replaced = diagonal + (a:byte(i) == b:byte(j) and 0 or 1)
      diagonal = row[j]
      row[j] = math.min(replaced, row[j] + 1, row[j - 1] + 1)
    end
  end
  return row[#b]
end

---@param name string
---@param known table<string, any>
---@return string
local function nearest(name, known)
  local names = vim.tbl_keys(known)
  table.sort(names, function(a, b)
    local far_a, far_b = distance(name, a), distance(name, b)
    return far_a < far_b or far_a == far_b and a < b
  end)
  return names[1]
end

--- Keys that are those of other actions unless they are set.
local followers = {
  next_edit_accept = "accept",
  next_edit_word = "accept_word",
  next_edit_line = "accept_line",
}

---@param text string
local function warn(text)
  notes.tell("mercury: " .. text, vim.log.levels.WARN)
end

--- The options that exist; a warning names each other one, and the one that may be meant.
---@param given table
---@param known table<string, any>
---@param where string
---@return table
local function without_unknown(given, known, where)
  local kept = {}
  for name, value in pairs(given) do
    if known[name] ~= nil then
      kept[name] = value
    else
      warn(("there is no option %q in %s; %q is the nearest"):format(name, where, nearest(tostring(name), known)))
    end
  end
  return kept
end

---@param config mercury.Config
---@return table<string, { [1]: any, [2]: any, [3]: string? }> what each option must be
local function expectations(config)
  local function is_shower(value)
    return vim.list_contains({ "auto", "own", "builtin" }, value)
  end
  local expected = {
    cmd = { "table" },
    debounce_ms = { "number" },
    filetypes = { "table" },
    ghost_text = { is_shower, '"auto", "own" or "builtin"' },
    keys = { "table" },
    settings = { "table" },
  }
  for name in pairs(config) do
    expected[name] = expected[name] or { "boolean" }
  end
  return expected
end

--- Check the user's options and make them the current ones. What is wrong is reported and left out.
---@param opts? mercury.Opts
---@return mercury.Config
function M.use(opts)
  local given = without_unknown(opts or {}, M.defaults, "setup()") ---@type table<string, any>
  for name, expected in pairs(expectations(M.defaults)) do
    local is_valid, problem = pcall(vim.validate, name, given[name], expected[1], true, expected[2])
    if not is_valid then
      warn(tostring(problem):gsub("^.-:%d+: ", ""))
      given[name] = nil
    end
  end
  if given.keys then
    given.keys = without_unknown(given.keys, M.defaults.keys, "keys")
    for follower, leader in pairs(followers) do
      if given.keys[follower] == nil then
        given.keys[follower] = given.keys[leader]
      end
    end
  end
  ---@diagnostic disable-next-line: param-type-mismatch -- it takes any tables
  M.current = vim.tbl_deep_extend("force", vim.deepcopy(M.defaults), given) --[[@as mercury.Config]]
  return M.current
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
