if vim.g.loaded_mercury then
  return
end
vim.g.loaded_mercury = true

vim.api.nvim_create_user_command("Mercury", function(args)
  require("mercury.commands").run(args.fargs)
end, {
  nargs = "*",
  desc = "Mercury: suggestions from the local model",
  complete = function(lead, line)
    return require("mercury.commands").complete(lead, line)
  end,
})
