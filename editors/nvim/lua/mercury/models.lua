local mercury_client = require("mercury.client")
local notes = require("mercury.notes")

local M = {}

---@class mercury.Speed
---@field answer_ms number
---@field estimated boolean

---@class mercury.Model A row of `mercury-lsp models list --json`.
---@field name string
---@field installed boolean
---@field in_use boolean
---@field size_bytes number
---@field licence? string
---@field speed? mercury.Speed

---@param text string
---@param level? integer
local function say(text, level)
  notes.tell("mercury: " .. text, level or vim.log.levels.INFO)
end

--- `mercury-lsp models ...`, or nil where `cmd` is a function.
---@param ... string
---@return string[]?
local function command(...)
  local cmd = mercury_client.command()
  if type(cmd) ~= "table" then
    say("the option `cmd` is a function; run mercury-lsp models in a shell", vim.log.levels.WARN)
    return nil
  end
  return vim.list_extend(vim.list_slice(cmd), { "models", ... })
end

--- Run it and hand on what it printed; what went wrong is shown.
---@param words string[]
---@param done fun(out: vim.SystemCompleted)
local function run(words, done)
  local on_exit = vim.schedule_wrap(function(out)
    if out.code == 0 then
      done(out)
    else
      say(vim.trim(out.stderr or ""), vim.log.levels.ERROR)
    end
  end)
  local ok, problem = pcall(vim.system, words, { text = true }, on_exit)
  if not ok then
    say(tostring(problem), vim.log.levels.ERROR)
  end
end

--- One line about a model.
---@param model mercury.Model
---@return string
function M.line(model)
  local parts = { model.licence or "licence unknown", ("%d MB"):format(math.floor(model.size_bytes / 1e6 + 0.5)) }
  if model.speed then
    local about = model.speed.estimated and "about " or ""
    table.insert(parts, ("%s%d ms a suggestion"):format(about, math.floor(model.speed.answer_ms + 0.5)))
  end
  if not model.installed then
    table.insert(parts, "to be downloaded")
  end
  return ("%s %s (%s)"):format(model.in_use and "*" or " ", model.name, table.concat(parts, ", "))
end

--- The server reads the choice whenever it gets its settings.
---@param model mercury.Model
local function use(model)
  local words = command("use", model.name)
  if not words then
    return
  end
  run(words, function()
    local settings = require("mercury.config").current.settings or {}
    if settings.model ~= nil then
      say(("your settings name another model, %s; remove it to use %s"):format(settings.model, model.name))
      return
    end
    local client = mercury_client.get()
    if client then
      client:notify("workspace/didChangeConfiguration", { settings = { [mercury_client.name] = settings } })
    end
    say(("%s is the model of all your editors now"):format(model.name))
  end)
end

--- In a terminal, because it shows the licence, asks, and takes minutes.
---@param model mercury.Model
local function add(model)
  local words = command("add", model.name)
  if words then
    vim.cmd("botright new")
    vim.fn.jobstart(words, { term = true })
    vim.cmd.startinsert()
  end
end

--- Let the user choose a model; one that is not installed is downloaded first.
function M.pick()
  local words = command("list", "--json")
  if not words then
    return
  end
  run(words, function(out)
    local ok, found = pcall(vim.json.decode, out.stdout or "", { luanil = { object = true, array = true } })
    if not ok or type(found) ~= "table" then
      say("the server's command printed no list of models; is it mercury-lsp, and up to date?", vim.log.levels.ERROR)
      return
    end
    local models = found --[[@as mercury.Model[] ]]
    vim.ui.select(models, { prompt = "Mercury model", format_item = M.line }, function(model)
      if model then
        (model.installed and use or add)(model)
      end
    end)
  end)
end

return M
