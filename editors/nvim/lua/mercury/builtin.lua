--- The verbs of `mercury.ghost` over Neovim 0.12's `vim.lsp.inline_completion`.

local config = require("mercury.config")
local pieces = require("mercury.piece")

local M = { enabled = true }

---@type table<integer, true?>
local attached = {}

---@param bufnr integer
function M.attach(bufnr)
  attached[bufnr] = true
  vim.lsp.inline_completion.enable(M.enabled and config.wants(bufnr), { bufnr = bufnr })
end

---@param bufnr integer
function M.detach(bufnr)
  attached[bufnr] = nil
end

--- Start where suggestions are wanted now, stop where they are not.
function M.refresh()
  for bufnr in pairs(attached) do
    M.attach(bufnr)
  end
end

---@param bufnr integer
---@return boolean
function M.is_attached(bufnr)
  return attached[bufnr] == true
end

---@class mercury.BuiltinItem An item of `vim.lsp.inline_completion`, which Neovim 0.11 does not declare.
---@field client_id integer
---@field insert_text string|table
---@field command? lsp.Command
---@field range? table its fields were renamed while 0.12 was made

--- What of an item is still to come after the cursor.
---@param item mercury.BuiltinItem
---@return string? rest nil for a snippet and for text that the cursor's line does not lead to
---@return integer over bytes after the cursor which the item replaces
local function rest_of(item)
  local text, range = item.insert_text, item.range
  if type(text) ~= "string" then
    return nil, 0
  end
  if not range then
    return text, 0
  end
  local col = vim.api.nvim_win_get_cursor(0)[2]
  local first = range.start_col or range.start.col
  local last = range.end_col or range.end_.col
  local typed = vim.api.nvim_get_current_line():sub(first + 1, col)
  if col < first or not vim.startswith(text, typed) then
    return nil, 0
  end
  return text:sub(#typed + 1), math.max(0, last - col) --[[@as integer]]
end

--- What cannot be pasted after the cursor is left to Neovim, and only as a whole.
---@param piece mercury.Piece
---@return boolean accepted false when nothing is shown
function M.accept(piece)
  return vim.lsp.inline_completion.get({
    ---@param item mercury.BuiltinItem
    on_accept = function(item)
      local rest, over = rest_of(item)
      if not rest then
        return piece == "all" and item or nil
      end
      local part = pieces.first(rest, piece)
      pieces.put(part, part == rest and over or 0)
      local client = vim.lsp.get_client_by_id(item.client_id)
      if part == rest and item.command and client then
        client:exec_cmd(item.command, { bufnr = vim.api.nvim_get_current_buf() })
      end
    end,
  })
end

---@return boolean dismissed false when nothing was shown
function M.dismiss()
  return vim.lsp.inline_completion.get({ on_accept = function() end })
end

---@param step integer
---@return boolean
function M.cycle(step)
  vim.lsp.inline_completion.select({ count = step })
  return true
end

return M
