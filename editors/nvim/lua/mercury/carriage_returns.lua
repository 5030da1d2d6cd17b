--- Bare carriage returns are characters of a line for Neovim, and end lines for the protocol. The server gets a blank
--- for each, so that lines and columns mean the same on both sides.

local M = {}

---@param text string
---@return string
local function without(text)
  return (text:gsub("\r(\n?)", function(line_feed)
    return line_feed == "" and " " or nil
  end))
end

---@param params table of a notification about a document
---@return boolean
local function ends_lines_with_them(params)
  return vim.bo[vim.uri_to_bufnr(params.textDocument.uri)].fileformat == "mac"
end

--- A notification's parameters as the server gets them.
---@param method string
---@param params any
---@return any
function M.replaced(method, params)
  if method == "textDocument/didOpen" and params.textDocument.text:find("\r") and not ends_lines_with_them(params) then
    local document = vim.tbl_extend("force", params.textDocument, { text = without(params.textDocument.text) })
    return vim.tbl_extend("force", params, { textDocument = document })
  elseif method == "textDocument/didChange" and not ends_lines_with_them(params) then
    local changes = vim.tbl_map(function(change)
      return change.text:find("\r") and vim.tbl_extend("force", change, { text = without(change.text) }) or change
    end, params.contentChanges)
    return vim.tbl_extend("force", params, { contentChanges = changes })
  end
  return params
end

return M
