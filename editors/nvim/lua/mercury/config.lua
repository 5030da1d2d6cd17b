local notes = require("mercury.notes")

local M = {}

---@class mercury.Keys Insert mode keys, those of next edits in normal mode, too; `false` leaves a key alone.
---@field accept? string|false
---@field accept_word? string|false
---@field accept_line? string|false
---@field dismiss? string|false
---@field next? string|false
---@field prev? string|false
---@field reveal? string|false Shows the text that is only marked, or asks for one.
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
---@field settings table

---@type mercury.Config
M.defaults = {
  cmd = { "mercury-lsp" },
  debounce_ms = 40,
  denoising = false,
  dim_unsure = true,
  enabled = true,
  filetypes = { ["*"] = true, gitcommit = false, netrw = false },
  ghost_text = "auto",
  keys = {
    accept = "<Tab>",
    accept_word = "<M-w>",
    accept_line = "<M-l>",
    dismiss = "<C-]>",
    next = "<M-]>",
    prev = "<M-[>",
    reveal = "<M-s>",
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

---@class mercury.Expectation
---@field holds fun(value: any): boolean
---@field words string what is expected

---@param type_name type
---@param words string
---@return mercury.Expectation
local function of_type(type_name, words)
  local function holds(value)
    return type(value) == type_name
  end
  return { holds = holds, words = words }
end

---@param value any
---@return boolean
local function is_command(value)
  local function is_no_word(word)
    return type(word) ~= "string" or word == ""
  end
  return vim.islist(value) and #value > 0 and #vim.tbl_filter(is_no_word, value) == 0
end

---@param value any
---@return boolean
local function is_by_filetype(value)
  for filetype, wanted in pairs(type(value) == "table" and value or { false }) do
    if type(filetype) ~= "string" or type(wanted) ~= "boolean" then
      return false
    end
  end
  return true
end

---@type mercury.Expectation
local a_key = {
  holds = function(value)
    return value == false or type(value) == "string" and value ~= ""
  end,
  words = "a key or false",
}

--- What each option must be; those that are not named here are switches.
---@type table<string, mercury.Expectation>
local expectations = {
  cmd = { holds = is_command, words = "a list of words" },
  debounce_ms = {
    holds = function(value)
      return type(value) == "number" and value >= 0
    end,
    words = "a number from 0",
  },
  filetypes = { holds = is_by_filetype, words = "true or false by filetype" },
  ghost_text = {
    holds = function(value)
      return vim.list_contains({ "auto", "own", "builtin" }, value)
    end,
    words = '"auto", "own" or "builtin"',
  },
  keys = of_type("table", "a table"),
  settings = of_type("table", "a table"),
}

--- What is as it must be; a warning names the rest.
---@param given table
---@param prefix string goes before their names
---@param expected fun(name: string): mercury.Expectation
---@return table
local function without_wrong(given, prefix, expected)
  local kept = {}
  for name, value in pairs(given) do
    local wanted = expected(name)
    if wanted.holds(value) then
      kept[name] = value
    else
      local found = vim.inspect(value, { newline = " ", indent = "" })
      warn(("%s%s: expected %s, got %s"):format(prefix, name, wanted.words, found))
    end
  end
  return kept
end

--- Check the user's options and make them the current ones. What is wrong is reported and left out.
---@param opts? mercury.Opts
---@return mercury.Config
function M.use(opts)
  local given = without_unknown(opts or {}, M.defaults, "setup()") ---@type table<string, any>
  given = without_wrong(given, "", function(name)
    return expectations[name] or of_type("boolean", "true or false")
  end)
  if given.keys then
    given.keys = without_wrong(without_unknown(given.keys, M.defaults.keys, "keys"), "keys.", function()
      return a_key
    end)
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

--- Whether a text is only marked until the user has it shown.
---@return boolean
function M.is_subtle()
  return M.current.settings.display == "subtle"
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
