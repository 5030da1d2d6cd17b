--- Asks another server where the name at the cursor stands and forwards the answer, so that a renaming which the user
--- begins goes on there. It is asked before they do: after the change it would not know what belongs together.

local config = require("mercury.config")
local mercury_client = require("mercury.client")

local api = vim.api

local M = {}

local METHOD = "mercury/didChangeHighlights"
local HIGHLIGHT = "textDocument/documentHighlight"

--- How long the cursor rests on a name, in milliseconds, before it is asked about.
local PAUSE_MS = 100

---@type uv.uv_timer_t?
local timer

--- The name that was asked about last: its buffer, version, row and first column.
local asked = ""

--- The name at the cursor; "" for none.
---@param bufnr integer
---@return string
local function name_at_cursor(bufnr)
  local cursor, line = api.nvim_win_get_cursor(0), api.nvim_get_current_line()
  local row, col = cursor[1], cursor[2]
  local before, after = vim.fn.matchstr(line:sub(1, col), [[\k*$]]), vim.fn.matchstr(line:sub(col + 1), [[^\k\+]])
  return after == "" and "" or ("%d:%d:%d:%d"):format(bufnr, api.nvim_buf_get_changedtick(bufnr), row, col - #before)
end

--- A range in another encoding of columns.
---@param bufnr integer
---@param range lsp.Range
---@param from "utf-8"|"utf-16"|"utf-32"
---@param to "utf-8"|"utf-16"|"utf-32"
---@return lsp.Range
local function converted(bufnr, range, from, to)
  local function position(at)
    local line = api.nvim_buf_get_lines(bufnr, at.line, at.line + 1, false)[1] or ""
    local byte = vim.str_byteindex(line, from, at.character, false)
    return { line = at.line, character = vim.str_utfindex(line, to, byte, false) }
  end
  return { start = position(range.start), ["end"] = position(range["end"]) }
end

---@param bufnr integer
---@return vim.lsp.Client? mercury
---@return vim.lsp.Client? other
local function clients(bufnr)
  local mercury = mercury_client.get(bufnr)
  if mercury and vim.tbl_get(mercury.server_capabilities or {}, "experimental", "mercury", "highlights") then
    for _, other in ipairs(vim.lsp.get_clients({ bufnr = bufnr, method = HIGHLIGHT })) do
      if other.id ~= mercury.id then
        return mercury, other
      end
    end
  end
end

---@param bufnr integer
local function ask(bufnr)
  local name = name_at_cursor(bufnr)
  local mercury, other = clients(bufnr)
  if name == "" or name == asked or not mercury or not other then
    return
  end
  asked = name
  local tick = api.nvim_buf_get_changedtick(bufnr)
  local from = other.offset_encoding --[[@as "utf-16"]]
  local to = mercury.offset_encoding --[[@as "utf-16"]]
  local params = vim.lsp.util.make_position_params(0, from)
  other:request(HIGHLIGHT, params, function(_, found)
    local is_same = api.nvim_buf_is_valid(bufnr) and api.nvim_buf_get_changedtick(bufnr) == tick
    if not is_same or type(found) ~= "table" or mercury:is_stopped() then
      return
    end
    local highlights = vim.tbl_map(function(each)
      return { range = converted(bufnr, each.range, from, to), kind = each.kind }
    end, found)
    local document = { uri = vim.uri_from_bufnr(bufnr), version = vim.lsp.util.buf_versions[bufnr] }
    ---@diagnostic disable-next-line: param-type-mismatch -- a notification of Mercury's own
    mercury:notify(METHOD, { textDocument = document, highlights = highlights })
  end, bufnr)
end

--- Ask from now on wherever the cursor rests on a name in normal mode.
---@param group integer of autocommands
---@param is_enabled fun(): boolean whether Mercury is switched on
function M.watch(group, is_enabled)
  api.nvim_create_autocmd("CursorMoved", {
    group = group,
    callback = function(args)
      if not is_enabled() or not config.current.next_edits then
        return
      end
      timer = timer or assert(vim.uv.new_timer())
      timer:start(
        PAUSE_MS,
        0,
        vim.schedule_wrap(function()
          if api.nvim_get_current_buf() == args.buf and api.nvim_get_mode().mode == "n" then
            ask(args.buf)
          end
        end)
      )
    end,
  })
end

return M
