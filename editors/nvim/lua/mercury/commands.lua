--- The verbs of `:Mercury`.

local notes = require("mercury.notes")

local M = {}

---@class mercury.Verb
---@field name string
---@field help string what it does, in a line
---@field takes? string[] the words that may follow, of which one may be named
---@field run? fun(mercury: table, word?: string): string? the result is shown; by default the function of its name

local SCOPES = { "buffer", "filetype" }

---@type mercury.Verb[]
local verbs = {
  { name = "accept", help = "insert the suggestion" },
  { name = "accept_line", help = "insert it up to the end of its line" },
  { name = "accept_word", help = "insert its next word" },
  {
    name = "disable",
    help = "stop suggesting",
    takes = SCOPES,
    run = function(mercury, scope)
      mercury.disable(scope)
    end,
  },
  { name = "dismiss", help = "hide the suggestion or the next edit" },
  {
    name = "download",
    help = "download the larger model that was offered",
    takes = { "yes", "later", "never" },
    run = function(_, word)
      require("mercury.offer").answer(word or "yes")
    end,
  },
  {
    name = "enable",
    help = "suggest again",
    takes = SCOPES,
    run = function(mercury, scope)
      mercury.enable(true, scope)
    end,
  },
  { name = "explain", help = "say why no suggestion and no next edit is shown" },
  { name = "model", help = "choose the model of all editors" },
  { name = "next", help = "show the next suggestion" },
  { name = "next_edit", help = "make the next edit and go there" },
  { name = "next_edit_all", help = "make all places that are left of a renaming" },
  { name = "next_edit_line", help = "make one line of the next edit" },
  { name = "next_edit_preview", help = "show the next edit as a diff" },
  { name = "next_edit_word", help = "make one word of the next edit" },
  { name = "prev", help = "show the suggestion before" },
  { name = "restart", help = "end the server and start a new one" },
  { name = "reveal", help = "show the text that is marked, or ask for one" },
  {
    name = "status",
    help = "how Mercury stands in this buffer",
    run = function(mercury)
      return mercury.status()
    end,
  },
  {
    name = "toggle",
    help = "switch suggestions on or off",
    takes = SCOPES,
    run = function(mercury, scope)
      mercury.toggle(scope)
    end,
  },
}

---@param name? string
---@return mercury.Verb?
local function verb_of(name)
  for _, verb in ipairs(verbs) do
    if verb.name == name then
      return verb
    end
  end
end

--- Show every verb with what it does.
---@param last string the line below them
---@param group? string its highlight
local function list(last, group)
  local chunks = {}
  for _, verb in ipairs(verbs) do
    table.insert(chunks, { ("%-18s"):format(verb.name), "Identifier" })
    table.insert(
      chunks,
      { verb.help .. (verb.takes and (" [%s]"):format(table.concat(verb.takes, "|")) or "") .. "\n" }
    )
  end
  table.insert(chunks, { last, group })
  vim.api.nvim_echo(chunks, true, {})
end

--- Do what the words say; without any, show the verbs and the state.
---@param words string[]
function M.run(words)
  local name, word = unpack(words)
  local verb, mercury = verb_of(name), require("mercury")
  if #words == 0 then
    local ok, state = pcall(mercury.status)
    list(tostring(state), not ok and "WarningMsg" or nil)
    return
  end
  local is_known = word == nil or verb ~= nil and verb.takes and vim.list_contains(verb.takes, word)
  if not verb or not is_known or #words > 2 then
    list("mercury: no such command: " .. table.concat(words, " "), "WarningMsg")
    return
  end
  local ok, message = pcall(verb.run or function()
    local act = mercury[verb.name] --[[@as fun()]]
    act()
  end, mercury, word)
  if message then
    notes.tell(tostring(message), ok and vim.log.levels.INFO or vim.log.levels.ERROR)
  end
end

--- The words that may come next.
---@param lead string
---@param line string
---@return string[]
function M.complete(lead, line)
  local typed = line:match("Mercury%s+(%S+)%s")
  local verb = verb_of(typed)
  local choices = typed and (verb and verb.takes or {}) or vim.tbl_map(function(each)
    return each.name
  end, verbs)
  return vim.tbl_filter(function(choice)
    return vim.startswith(choice, lead)
  end, choices)
end

return M
