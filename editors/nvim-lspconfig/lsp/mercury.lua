---@brief
---
--- https://github.com/mercury-lsp/mercury-lsp
---
--- Code completion by a small language model on your own machine. Install it with `pipx install mercury-lsp`.
---
--- Neovim 0.12 shows its suggestions as ghost text once `:help lsp-inline-completion` is enabled:
---
--- ```lua
--- vim.api.nvim_create_autocmd('LspAttach', {
---   callback = function(args)
---     local client = assert(vim.lsp.get_client_by_id(args.data.client_id))
---     if vim.lsp.inline_completion and client:supports_method('textDocument/inlineCompletion', args.buf) then
---       vim.lsp.inline_completion.enable(true, { bufnr = args.buf })
---       vim.keymap.set('i', '<Tab>', function()
---         if not vim.lsp.inline_completion.get() then
---           return '<Tab>'
---         end
---       end, { expr = true, buffer = args.buf, desc = 'LSP: accept inline completion' })
---     end
---   end,
--- })
--- ```
---
--- Neovim 0.11 has no inline completion: there a suggestion is the first item of the completion list. The code actions
--- "Mercury: fill here" and "Mercury: apply next edit" are listed by `gra`.

---@type vim.lsp.Config
return {
  cmd = { 'mercury-lsp' },
  root_markers = { '.git' },
  -- The settings are in https://github.com/mercury-lsp/mercury-lsp/blob/main/docs/settings.md
  settings = {
    mercury = {},
  },
}
