--- Says something to the user without making them press Enter: the server's answer to a command stands after the line of
--- the cursor, anything else takes one line.

local api = vim.api
local namespace = api.nvim_create_namespace("mercury.notes")

local M = {}

--- How many commands of the user the server is at.
local commands = 0

--- Errors of requests that were cancelled, or lost with a server that has been replaced.
local HARMLESS = { -32800, -32801, -32802 }

--- What `tell_once` has said.
---@type table<string, true?>
local told = {}

local LEVELS = { vim.log.levels.ERROR, vim.log.levels.WARN }

--- Say something after the cursor's line, until the cursor or the text moves.
---@param text string
local function note(text)
  local bufnr, cursor = api.nvim_get_current_buf(), api.nvim_win_get_cursor(0)
  local tick = api.nvim_buf_get_changedtick(bufnr)
  local group = api.nvim_create_augroup("mercury.notes", {})
  local function clear()
    if api.nvim_buf_is_valid(bufnr) then
      api.nvim_buf_clear_namespace(bufnr, namespace, 0, -1)
    end
  end
  clear()
  require("mercury.draw").say(namespace, cursor[1] - 1, { "  " .. text, "MercuryNote" })
  local moves = { "CursorMoved", "CursorMovedI", "TextChanged", "TextChangedI", "BufEnter" }
  api.nvim_create_autocmd(moves, {
    group = group,
    callback = function()
      -- The server may have moved the cursor just before, and the event of that comes now.
      local is_here = api.nvim_get_current_buf() == bufnr and vim.deep_equal(api.nvim_win_get_cursor(0), cursor)
      if not is_here or api.nvim_buf_get_changedtick(bufnr) ~= tick then
        clear()
      end
    end,
  })
end

--- The words of a text in lines.
---@param text string
---@param room integer most columns of a line; a longer word has one of its own
---@return string[]
function M.in_lines(text, room)
  local lines = { "" }
  for word in text:gmatch("%S+") do
    local longer = vim.trim(lines[#lines] .. " " .. word)
    if vim.fn.strdisplaywidth(longer) <= room then
      lines[#lines] = longer
    else
      table.insert(lines, word)
    end
  end
  return lines
end

--- Say something below the window. Of several lines the first is left to be seen, and `:messages` has them all; plugins
--- that show notifications elsewhere get the whole text.
---@param text string
---@param level integer of |vim.log.levels|
function M.tell(text, level)
  local origin = assert(debug.getinfo(vim.notify, "S")).source
  local is_neovims = origin:find("vim/_editor", 1, true) ~= nil
  local lines = is_neovims and M.in_lines(text, vim.v.echospace) or { text }
  for _, line in ipairs(lines) do
    vim.notify(line, level)
    if #lines > 1 then
      vim.cmd.redraw()
    end
  end
  if #lines > 1 then
    api.nvim_echo({ { vim.fn.strcharpart(lines[1], 0, vim.v.echospace - 2) .. " …" } }, false, {})
  end
end

--- The same, unless it was said before.
---@param text string
---@param level integer
function M.tell_once(text, level)
  if not told[text] then
    told[text] = true
    M.tell(text, level)
  end
end

--- Handle `window/showMessage`.
---@param said { type: integer, message: string }
function M.show(said)
  if said.type == vim.lsp.protocol.MessageType.Info and commands > 0 then
    note(said.message)
  else
    M.tell(said.message, LEVELS[said.type] or vim.log.levels.INFO)
  end
end

--- The server is gone, and answers nothing more.
function M.reset()
  commands = 0
end

--- Run one of the server's commands, which says what it did or why it didn't.
---@param client vim.lsp.Client
---@param bufnr integer
---@param command string
---@param arguments table
---@return boolean asked
function M.run(client, bufnr, command, arguments)
  local params = { command = command, arguments = arguments }
  local asked = client:request("workspace/executeCommand", params, function(err)
    commands = math.max(0, commands - 1)
    if err and not vim.list_contains(HARMLESS, err.code) then
      M.tell("mercury: " .. err.message, vim.log.levels.ERROR)
    end
  end, bufnr)
  commands = commands + (asked and 1 or 0)
  return asked
end

return M
