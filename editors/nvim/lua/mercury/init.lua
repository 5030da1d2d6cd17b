local M = {}

--- What shows ghost text: `mercury.ghost` or `mercury.builtin`; nil before `setup`.
---@type table?
local shower

local function choose_shower()
  local config = require("mercury.config")
  local wanted, is_subtle = config.current.ghost_text, config.is_subtle()
  if wanted == "builtin" and not vim.lsp.inline_completion then
    error('mercury: ghost_text = "builtin" needs Neovim 0.12', 0)
  end
  if wanted == "builtin" and is_subtle then
    error('mercury: display = "subtle" needs ghost_text = "own"', 0)
  end
  local builtin = wanted == "builtin" or (wanted == "auto" and vim.lsp.inline_completion ~= nil and not is_subtle)
  return require(builtin and "mercury.builtin" or "mercury.ghost")
end

---@param ghost_text table what shows it
local function watch(ghost_text)
  local mercury_client = require("mercury.client")
  local group = vim.api.nvim_create_augroup("mercury", {})
  require("mercury.colours").define(group)
  require("mercury.sign").watch(group)
  ---@param events string|string[]
  ---@param callback fun(args: vim.api.keyset.create_autocmd.callback_args)
  ---@param pattern? string
  local function on(events, callback, pattern)
    vim.api.nvim_create_autocmd(events, { group = group, callback = callback, pattern = pattern })
  end
  local function follow(args)
    local bufnr = vim.api.nvim_get_current_buf()
    if ghost_text.enabled and args.buf == bufnr and mercury_client.get(bufnr) then
      require("mercury.next_edits").changed(bufnr)
    end
  end
  local changes = { "TextChanged", "TextChangedI", "TextChangedP" }
  local moves = { "CursorMoved", "CursorMovedI", "WinScrolled", "BufEnter" }
  on(vim.list_extend(changes, moves), follow)
  on("ModeChanged", follow, "i*:[^i]*") -- also after CTRL-C, which InsertLeave does not tell of
  on("RecordingEnter", require("mercury.next_edits").clear)
  on("RecordingLeave", vim.schedule_wrap(follow)) -- it is still recorded when the event comes
  on("OptionSet", function()
    ghost_text.refresh()
    require("mercury.next_edits").draw()
  end, "paste")
  local function is_enabled()
    return ghost_text.enabled
  end
  require("mercury.diagnostics").watch(group, is_enabled)
  require("mercury.highlights").watch(group, is_enabled)
  on("InsertEnter", function(args)
    mercury_client.tell_problem(args.buf)
    mercury_client.tell_no_filetype(args.buf)
    vim.schedule(require("mercury.next_edits").draw) -- <Tab> may indent now
  end)
  on("BufEnter", function(args)
    mercury_client.enter(args.buf)
  end)
  on({ "BufFilePre", "BufWipeout" }, function(args)
    mercury_client.leave_name(args.buf, args.event)
  end)
  on({ "BufFilePost", "BufNew" }, function(args)
    mercury_client.reopen(args.buf)
  end)
  on("FileType", function(args)
    mercury_client.take_language(args.buf)
  end)
  on("LspAttach", function(args)
    local client = vim.lsp.get_client_by_id(args.data.client_id)
    if client and client.name == mercury_client.name then
      mercury_client.attached(client, args.buf)
      ghost_text.attach(args.buf, client.id)
      require("mercury.diagnostics").attached(args.buf)
      vim.cmd.redrawstatus()
    end
  end)
  on("LspDetach", function(args)
    local client = vim.lsp.get_client_by_id(args.data.client_id)
    if client and client.name == mercury_client.name then
      ghost_text.detach(args.buf)
      require("mercury.next_edits").detached(args.buf, client:is_stopped())
    end
  end)
end

--- What the keys do; ghost text comes before a next edit with the same key.
---@return mercury.Action[]
local function actions()
  local next_edits, insert, both = require("mercury.next_edits"), { "i" }, { "n", "i" }
  local function here(piece)
    return function()
      return next_edits.apply_here(piece)
    end
  end
  local function go_on()
    return next_edits.go_on() or M.next_edit()
  end
  return {
    { name = "accept", modes = insert, run = M.accept, yields = true },
    { name = "accept_word", modes = insert, run = M.accept_word },
    { name = "accept_line", modes = insert, run = M.accept_line },
    { name = "dismiss", modes = insert, run = M.dismiss },
    { name = "next", modes = insert, run = M.next },
    { name = "prev", modes = insert, run = M.prev },
    { name = "reveal", modes = insert, run = M.reveal },
    { name = "next_edit_accept", modes = both, run = M.next_edit_accept, yields = true },
    { name = "next_edit", modes = both, run = go_on },
    { name = "next_edit_word", modes = both, run = here("word") },
    { name = "next_edit_line", modes = both, run = here("line") },
    { name = "next_edit_all", modes = both, run = M.next_edit_all },
    { name = "next_edit_preview", modes = both, run = M.next_edit_preview },
    { name = "next_edit_dismiss", modes = { "n" }, run = next_edits.dismiss },
  }
end

--- Start Mercury for the buffers that want it and map the keys. Call it once.
---@param opts? mercury.Opts
function M.setup(opts)
  if vim.fn.has("nvim-0.11") == 0 then
    ---@diagnostic disable-next-line: call-non-callable -- its metatable makes it callable
    error(("mercury: Neovim 0.11 or newer is needed; this is %s"):format(vim.version()), 0)
  end
  local config = require("mercury.config").use(opts)
  shower = choose_shower()
  shower.enabled = config.enabled
  watch(shower)
  require("mercury.keys").map(config.keys, actions())
  require("mercury.client").start()
end

local function shown_by()
  return shower or error("mercury: call require('mercury').setup() first", 0)
end

--- Insert the whole suggestion.
---@return boolean accepted false when nothing is shown
function M.accept()
  return shown_by().accept("all")
end

--- Insert the next word of the suggestion.
---@return boolean accepted false when nothing is shown
function M.accept_word()
  return shown_by().accept("word")
end

--- Insert the suggestion up to the end of its line.
---@return boolean accepted false when nothing is shown
function M.accept_line()
  return shown_by().accept("line")
end

--- Hide the suggestion until the text changes.
---@return boolean dismissed false when nothing was shown
function M.dismiss()
  return shown_by().dismiss() or require("mercury.next_edits").dismiss()
end

--- Show the next suggestion, asking the server for more where only one is known.
---@return boolean
function M.next()
  return shown_by().cycle(1)
end

--- Show the suggestion before.
---@return boolean
function M.prev()
  return shown_by().cycle(-1)
end

--- Show the text that is only marked, with `settings.display = "subtle"`; where none is, ask for one.
---@return boolean
function M.reveal()
  local mercury_shower = shown_by()
  return mercury_shower.reveal ~= nil and mercury_shower.reveal() or mercury_shower.cycle(1)
end

--- Make the next edit and go there; where none is drawn the server looks for one, or goes to the likeliest place and
--- says that there is none.
---@return boolean asked false without a server
function M.next_edit()
  return require("mercury.next_edits").apply() or require("mercury.client").next_edit(vim.api.nvim_get_current_buf())
end

--- Say why nothing is shown in this buffer.
---@return boolean asked false without a server, which is said instead
function M.explain()
  local is_asked = require("mercury.client").explain(vim.api.nvim_get_current_buf())
  if not is_asked then
    require("mercury.notes").tell(M.status(), vim.log.levels.INFO)
  end
  return is_asked
end

--- Go to the next edit that is drawn, or make it if the cursor is in its lines.
---@param otherwise? fun() what the key does where no edit follows the one just made
---@return boolean done false when none is drawn, and in the indentation of a line while inserting, where Tab indents
function M.next_edit_accept(otherwise)
  return not require("mercury.jump").is_indenting() and require("mercury.next_edits").go_on(otherwise)
end

--- Make the next word of the edit that is drawn.
---@return boolean applied false when none is drawn
function M.next_edit_word()
  return require("mercury.next_edits").apply("word")
end

--- Make the next line of the edit that is drawn.
---@return boolean applied false when none is drawn
function M.next_edit_line()
  return require("mercury.next_edits").apply("line")
end

--- Make all places that are left of the renaming that is drawn, in one undo step.
---@return boolean asked false when no renaming is drawn
function M.next_edit_all()
  return require("mercury.next_edits").apply_all()
end

--- Show the next edit as a diff in a floating window.
---@return boolean shown false when none is drawn
function M.next_edit_preview()
  return require("mercury.next_edits").preview()
end

--- End the server and start a new one, also where it hangs.
function M.restart()
  shown_by()
  require("mercury.client").restart()
end

--- Let the user choose the model of all editors; one that is not installed is downloaded first.
function M.model()
  shown_by()
  require("mercury.models").pick()
end

--- Switch suggestions on or off: everywhere, or in this buffer or its filetype only.
---@param enabled? boolean default true
---@param scope? "buffer"|"filetype"
function M.enable(enabled, scope)
  local mercury_shower = shown_by()
  enabled = enabled ~= false
  local config = require("mercury.config")
  if scope == "buffer" then
    -- A buffer that says the same as its filetype follows it again.
    vim.b.mercury = nil
    if enabled ~= config.allows(vim.bo.filetype) then
      vim.b.mercury = enabled
    end
  elseif scope == "filetype" then
    config.current.filetypes[vim.bo.filetype] = enabled
  else
    mercury_shower.enabled = enabled
  end
  mercury_shower.refresh()
  if not enabled then
    require("mercury.next_edits").clear()
  end
  if enabled and scope then
    require("mercury.client").attach_wanting()
  end
end

---@param scope? "buffer"|"filetype"
function M.disable(scope)
  M.enable(false, scope)
end

---@param scope? "buffer"|"filetype"
function M.toggle(scope)
  M.enable(not M.is_enabled(scope), scope)
end

---@param scope? "buffer"|"filetype"
---@return boolean
function M.is_enabled(scope)
  local config = require("mercury.config")
  if scope == "buffer" then
    return config.wants(vim.api.nvim_get_current_buf())
  elseif scope == "filetype" then
    return config.allows(vim.bo.filetype)
  end
  return shown_by().enabled
end

--- One line on how Mercury stands in this buffer.
---@return string
function M.status()
  local mercury_client, bufnr = require("mercury.client"), vim.api.nvim_get_current_buf()
  local client, said = mercury_client.get(bufnr), require("mercury.status").said
  local is_on = M.is_enabled() and M.is_enabled("buffer")
  local why = is_on and client and mercury_client.why_silent(client, bufnr)
  local parts = { "mercury: " .. (not is_on and "off" or why and "off here" or "on") }
  local attached = client and ("server attached (client %d)"):format(client.id)
  table.insert(parts, attached or "no server here: " .. mercury_client.why_absent(bufnr))
  if why then
    table.insert(parts, why)
  elseif attached and said and said.message and said.message ~= "" then
    table.insert(parts, said.message)
  end
  return table.concat(parts, ", ")
end

--- For a statusline: "mercury" and loading, ready, busy, off or error. Asks nobody; empty before `setup`.
---@return string
function M.statusline()
  if not shower then
    return ""
  end
  local bufnr, word = vim.api.nvim_get_current_buf(), require("mercury.status").word
  local wanted = shower.enabled and require("mercury.config").wants(bufnr)
  -- A server that ended or never ran is in no buffer.
  local mercury_status = require("mercury.status")
  local known = wanted and (shower.is_attached(bufnr) or word == "error" or mercury_status.comes_back)
  return "mercury " .. (known and word or "off")
end

return M
