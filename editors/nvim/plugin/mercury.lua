if vim.g.loaded_mercury then
  return
end
vim.g.loaded_mercury = true

local verbs = {
  "accept",
  "accept_line",
  "accept_word",
  "disable",
  "dismiss",
  "enable",
  "next",
  "prev",
  "status",
  "toggle",
}

vim.api.nvim_create_user_command("Mercury", function(args)
  if not vim.list_contains(verbs, args.args) then
    vim.notify(("mercury: no such command: %s; see :help :Mercury"):format(args.args), vim.log.levels.ERROR)
    return
  end
  local ok, result = pcall(require("mercury")[args.args])
  if not ok then
    vim.notify(tostring(result), vim.log.levels.ERROR)
  elseif args.args == "status" then
    vim.notify(result)
  end
end, {
  nargs = 1,
  desc = "Mercury: suggestions from the local model",
  complete = function(lead)
    return vim.tbl_filter(function(verb)
      return vim.startswith(verb, lead)
    end, verbs)
  end,
})
