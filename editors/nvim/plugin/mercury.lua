if vim.g.loaded_mercury then
  return
end
vim.g.loaded_mercury = true

local scopes = { "buffer", "filetype" }

--- What every command does; the result is a message to show.
---@type table<string, fun(mercury: table, scope?: string): string?>
local commands = {
  enable = function(mercury, scope)
    mercury.enable(true, scope)
  end,
  disable = function(mercury, scope)
    mercury.disable(scope)
  end,
  toggle = function(mercury, scope)
    mercury.toggle(scope)
  end,
  status = function(mercury)
    return mercury.status()
  end,
}

local takes_scope = { enable = true, disable = true, toggle = true }

local plain = { "accept", "accept_line", "accept_word", "dismiss", "model", "next", "prev" }
for _, key in ipairs(vim.list_extend(plain, { "next_edit", "next_edit_all", "next_edit_preview" })) do
  commands[key] = function(mercury)
    mercury[key]()
  end
end

---@param words string[]
---@return boolean
local function is_command(words)
  local verb, scope = unpack(words)
  return commands[verb] ~= nil
    and #words <= 2
    and (scope == nil or (takes_scope[verb] and vim.list_contains(scopes, scope)))
end

vim.api.nvim_create_user_command("Mercury", function(args)
  local verb, scope = unpack(args.fargs)
  verb = verb or "status"
  if #args.fargs > 0 and not is_command(args.fargs) then
    vim.notify(("mercury: no such command: %s; see :help :Mercury"):format(args.args), vim.log.levels.ERROR)
    return
  end
  local ok, message = pcall(commands[verb], require("mercury"), scope)
  if message then
    vim.notify(tostring(message), ok and vim.log.levels.INFO or vim.log.levels.ERROR)
  end
end, {
  nargs = "*",
  desc = "Mercury: suggestions from the local model",
  complete = function(lead, line)
    local verb = line:match("Mercury%s+(%S+)%s")
    local choices = verb and (takes_scope[verb] and scopes or {}) or vim.tbl_keys(commands)
    table.sort(choices)
    return vim.tbl_filter(function(choice)
      return vim.startswith(choice, lead)
    end, choices)
  end,
})
