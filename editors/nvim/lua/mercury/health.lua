local mercury_client = require("mercury.client")
local status = require("mercury.status")

local M = {}

local SERVER_ANSWERS_IN_MS = 2000

--- Other plugins that show text at the cursor, with the module that each loads or the variable that it sets.
---@type table<string, string>
local other_sources = {
  ["codeium.nvim"] = "codeium",
  ["copilot.lua"] = "copilot",
  ["copilot.vim"] = "g:loaded_copilot",
  ["cursortab.nvim"] = "cursortab",
  ["llama.vim"] = "g:llama_config",
  ["minuet-ai.nvim"] = "minuet",
  ["neocodeium"] = "neocodeium",
  ["sidekick.nvim"] = "sidekick",
  ["supermaven-nvim"] = "supermaven-nvim",
  ["vim-tabby"] = "g:loaded_tabby",
  ["windsurf.vim"] = "g:loaded_codeium",
}

--- Completion plugins that take keys first and hand them on, by the description of their mappings.
---@type table<string, string?>
local hands_on = { ["blink.cmp"] = "blink.cmp", ["cmp.utils.keymap.set_map"] = "nvim-cmp" }

---@return boolean well whether to check further
local function check_neovim()
  ---@diagnostic disable-next-line: call-non-callable -- its metatable makes it callable
  local version = "Neovim " .. tostring(vim.version())
  if vim.fn.has("nvim-0.11") == 0 then
    vim.health.error(version .. ": 0.11 or newer is needed")
    return false
  end
  local builtin = vim.lsp.inline_completion ~= nil
  vim.health.ok(version .. (builtin and " with vim.lsp.inline_completion" or ", ghost text is drawn by this plugin"))
  return true
end

---@return boolean well
local function check_setup()
  if not vim.lsp.config[mercury_client.name] then
    vim.health.error("mercury is not set up", "call require('mercury').setup(); if you do, :messages says what failed")
    return false
  elseif not require("mercury").is_enabled() then
    vim.health.warn("suggestions are switched off", "`:Mercury enable` shows them")
  end
  return true
end

---@return boolean well
local function check_command()
  local problem = mercury_client.problem()
  if problem then
    local what, advice = unpack(vim.split(problem, "; "))
    vim.health.error(assert(what), assert(advice))
    return false
  end
  vim.health.ok("the server's command is " .. vim.inspect(mercury_client.command()))
  return true
end

--- What the server answers to `mercury/status`.
---@param said { kind: string, busy: boolean, message: string, version: string, engine?: table }
local function tell_status(said)
  vim.health.info("mercury-lsp " .. said.version)
  if type(said.engine) == "table" then
    local engine = said.engine
    vim.health.ok(("the model %s runs on %s by %s"):format(engine.name, engine.device, engine.backend or "?"))
    if engine.whyNotGpu then
      vim.health.warn("the GPU is not used: " .. engine.whyNotGpu, "mercury-lsp doctor --gpu")
    end
  elseif said.kind == "Error" then
    vim.health.error("there is no model: " .. said.message, "run `mercury-lsp doctor`")
  else
    vim.health.warn("the model is not there yet", "run :checkhealth mercury again in some seconds")
  end
  if said.kind == "Inactive" or said.kind == "Warning" then
    vim.health.warn(said.message)
  end
end

local function tell_absence()
  local doctor = "run `mercury-lsp doctor`; what the server said is in " .. vim.lsp.log.get_filename()
  if status.exit_code then
    vim.health.error(("the server ended with exit code %d"):format(status.exit_code), doctor)
  else
    local open = "open a file, then run :checkhealth mercury again"
    vim.health.warn("no server has answered yet", { open, "if a file is open, " .. doctor })
  end
end

local function check_server()
  local client = mercury_client.get()
  if not client then
    tell_absence()
    return
  elseif not client:supports_method(mercury_client.method) then
    vim.health.error("the server does not offer " .. mercury_client.method)
    return
  end
  vim.health.ok(("the server runs (client %d, %s positions)"):format(client.id, client.offset_encoding))
  local answer = client:request_sync("mercury/status", vim.empty_dict(), SERVER_ANSWERS_IN_MS)
  if answer and type(answer.result) == "table" then
    tell_status(answer.result)
  else
    vim.health.warn("the server does not report its status", "is the option `cmd` mercury-lsp, and is it up to date?")
  end
end

--- Name the files that have no server, and why.
local function check_buffers()
  for _, bufnr in ipairs(vim.tbl_filter(vim.api.nvim_buf_is_loaded, vim.api.nvim_list_bufs())) do
    local name = vim.fs.basename(vim.api.nvim_buf_get_name(bufnr))
    if name ~= "" and vim.bo[bufnr].buftype == "" and not mercury_client.get(bufnr) then
      vim.health.info(("nothing is suggested in %s: %s"):format(name, mercury_client.why_absent(bufnr)))
    end
  end
end

---@param lhs string
---@param action string
local function check_key(lhs, action)
  local mode = action == "next_edit_dismiss" and "n" or "i"
  for _, bufnr in ipairs(vim.tbl_filter(vim.api.nvim_buf_is_loaded, vim.api.nvim_list_bufs())) do
    local old = vim.api.nvim_buf_call(bufnr, function()
      return vim.fn.maparg(lhs, mode, false, true)
    end)
    if hands_on[old.desc] then
      local where = "where its mapping calls its fallback"
      vim.health.info(("%s has %s first; it reaches %s %s"):format(hands_on[old.desc], lhs, action, where))
      return
    elseif not vim.startswith(old.desc or "", "Mercury: ") then
      local taken = vim.tbl_isempty(old) and "not mapped" or "mapped to " .. (old.desc or old.rhs or "a function")
      local verb = mode == "n" and "dismiss" or action
      local advice = ("call require('mercury').%s() from that mapping, or set keys.%s"):format(verb, action)
      vim.health.warn(("%s is not the key for %s: it is %s (buffer %d)"):format(lhs, action, taken, bufnr), advice)
      return
    end
  end
end

local function check_keys()
  for action, lhs in vim.spairs(require("mercury.config").current.keys) do
    if lhs then
      check_key(lhs, action)
    end
  end
end

--- Whether another plugin is there.
---@param sign string of `other_sources`
local function is_loaded(sign)
  local variable = sign:match("^g:(.*)$")
  return (variable and vim.g[variable] or package.loaded[sign]) ~= nil
end

local function check_other_sources()
  for name, sign in vim.spairs(other_sources) do
    if is_loaded(sign) then
      vim.health.warn(
        name .. " is loaded too",
        "two suggestions at one cursor are hard to read; switch one of them off"
      )
    end
  end
  for _, client in ipairs(vim.lsp.get_clients()) do
    if client.name:find("copilot", 1, true) and (client.server_info or {}).name ~= "mercury-lsp" then
      local advice = "if they are to ask mercury-lsp, stop it"
      vim.health.warn("plugins made for Copilot take their next edits from the client " .. client.name, advice)
    elseif client.name ~= mercury_client.name and client:supports_method(mercury_client.method) then
      vim.health.warn(client.name .. " offers inline completion too", "switch one of them off")
    end
  end
end

function M.check()
  vim.health.start("mercury")
  if not (check_neovim() and check_setup()) then
    return
  elseif check_command() then
    check_server()
  end
  check_buffers()
  check_keys()
  check_other_sources()
end

return M
