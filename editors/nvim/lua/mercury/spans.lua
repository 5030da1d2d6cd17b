--- Where two texts differ, by words; both end their lines with "\n".

local M = {}

---@class mercury.Span
---@field start integer bytes of the old text in front of it
---@field stop integer bytes up to its end
---@field text string what replaces it

--- Longest unchanged text, in bytes, between two changes of a line that are drawn as one.
local LONGEST_BRIDGE = 2

--- Smallest share of a changed line that must stay for its words to be compared.
local LEAST_KEPT = 0.3

--- Stands for a line break where every token is a line of its own.
local BREAK = "\r"

---@param old string[]
---@param new string[] no item of either has a line break
---@return integer[][] runs first and number of the old items, first and number of the new ones; from 1
local function runs(old, new)
  local function joined(items)
    return #items > 0 and table.concat(items, "\n") .. "\n" or ""
  end
  local found = vim.diff(joined(old), joined(new), { result_type = "indices" }) --[[@as integer[][] ]]
  for _, run in ipairs(found) do
    -- Where there are no items, xdiff names the one in front.
    run[1] = run[2] == 0 and run[1] + 1 or run[1]
    run[3] = run[4] == 0 and run[3] + 1 or run[3]
  end
  return found
end

---@param text string
---@return string[]
local function tokens(text)
  local found, at = {}, 1
  while at <= #text do
    local _, stop = text:find("^[%w_\128-\255]+", at)
    if not stop then
      _, stop = text:find("^[^%S\n]+", at)
    end
    stop = stop or at
    table.insert(found, text:sub(at, stop))
    at = stop + 1
  end
  return found
end

--- Bytes in front of each item, and of all of them.
---@param items string[]
---@param extra integer bytes after each
---@return integer[]
local function starts_of(items, extra)
  local starts = { 0 }
  for i, item in ipairs(items) do
    starts[i + 1] = (starts[i] or 0) + #item + extra
  end
  return starts
end

--- Spans with only a few bytes of a line between them are one.
---@param old string
---@param found mercury.Span[]
---@return mercury.Span[]
local function bridged(old, found)
  local made = {} ---@type mercury.Span[]
  for _, span in ipairs(found) do
    local last = made[#made]
    local between = last and old:sub(last.stop + 1, span.start) or ""
    if last and #between <= LONGEST_BRIDGE and not between:find("\n") then
      last.stop, last.text = span.stop, last.text .. between .. span.text
    else
      table.insert(made, span)
    end
  end
  return made
end

--- One span from the first to the last, where so little stays that several would be hard to read.
---@param old string
---@param new string
---@param found mercury.Span[]
---@return mercury.Span[]
local function tidy(old, new, found)
  local removed, length = 0, #vim.trim(old)
  for _, span in ipairs(found) do
    removed = removed + span.stop - span.start
  end
  if #found <= 2 or length - removed >= LEAST_KEPT * length then
    return bridged(old, found)
  end
  local start = 0
  while old:sub(start + 1, start + 1):find("^[ \t]") and old:byte(start + 1) == new:byte(start + 1) do
    start = start + 1
  end
  return { { start = start, stop = #old, text = new:sub(start + 1) } }
end

---@param old string
---@param new string
---@param offset integer where `old` starts
---@return mercury.Span[]
local function words(old, new, offset)
  local old_tokens, new_tokens = tokens(old), tokens(new)
  local function without_breaks(items)
    return vim.tbl_map(function(item)
      return item == "\n" and BREAK or item
    end, items)
  end
  local starts, found = starts_of(old_tokens, 0), {}
  for _, run in ipairs(runs(without_breaks(old_tokens), without_breaks(new_tokens))) do
    local text = table.concat(new_tokens, "", run[3], run[3] + run[4] - 1)
    table.insert(found, { start = starts[run[1]], stop = starts[run[1] + run[2]], text = text })
  end
  local made = tidy(old, new, found)
  for _, span in ipairs(made) do
    span.start, span.stop = span.start + offset, span.stop + offset
  end
  return made
end

--- What turns one text into another, in order. A line that is inserted or removed is a span with its line break.
---@param old string
---@param new string
---@return mercury.Span[]
function M.between(old, new)
  local old_lines, new_lines = vim.split(old, "\n", { plain = true }), vim.split(new, "\n", { plain = true })
  local starts, found = starts_of(old_lines, 1), {}
  for _, run in ipairs(runs(old_lines, new_lines)) do
    local first, count, at = run[1], run[2], starts[run[1]]
    local removed = table.concat(old_lines, "\n", first, first + count - 1)
    local added = table.concat(new_lines, "\n", run[3], run[3] + run[4] - 1)
    local is_last = first + count > #old_lines
    if count == 0 then
      local text = is_last and "\n" .. added or added .. "\n"
      table.insert(found, { start = math.min(at, #old), stop = math.min(at, #old), text = text })
    elseif run[4] == 0 then
      local start = is_last and math.max(0, at - 1) or at
      table.insert(found, { start = start, stop = is_last and #old or starts[first + count], text = "" })
    elseif count == run[4] then
      for i = 0, count - 1 do
        vim.list_extend(found, words(old_lines[first + i], new_lines[run[3] + i], starts[first + i]))
      end
    else
      vim.list_extend(found, words(removed, added, at))
    end
  end
  return found
end

--- A text with all spans replaced.
---@param old string
---@param spans mercury.Span[]
---@return string
function M.apply(old, spans)
  local at, made = 0, {}
  for _, span in ipairs(spans) do
    table.insert(made, old:sub(at + 1, span.start) .. span.text)
    at = span.stop
  end
  return table.concat(made) .. old:sub(at + 1)
end

--- What a span removes, and the first word of what it adds; a new line stays a line.
---@param span mercury.Span
---@return mercury.Span
local function first_word(span)
  local word = require("mercury.piece").first(span.text, "word")
  local is_line = span.start == span.stop and span.text:sub(-1) == "\n"
  if is_line and word:sub(-1) ~= "\n" then
    word = word .. "\n"
  end
  return { start = span.start, stop = span.stop, text = word }
end

--- A text up to the end of its first line that has one.
---@param text string
---@return string
local function first_line(text)
  local from = vim.startswith(text, "\n") and 2 or 1
  local stop = text:find("\n", from, true)
  if not stop then
    return text
  end
  return text:sub(1, from > 1 and stop - 1 or stop)
end

--- The spans to replace now; what is left is the new difference.
---@param old string
---@param spans mercury.Span[] at least one
---@param piece mercury.Piece
---@return mercury.Span[]
function M.part(old, spans, piece)
  local first = spans[1]
  if not first or piece == "all" then
    return spans
  elseif piece == "word" then
    return { first_word(first) }
  end
  local added = first_line(first.text)
  if #added < #first.text then
    local removed = first_line(old:sub(first.start + 1, first.stop))
    return { { start = first.start, stop = first.start + #removed, text = added } }
  end
  local line_end = (old:find("\n", first.stop + 1, true) or #old + 1) - 1
  return vim.tbl_filter(function(span)
    return span == first or span.stop <= line_end and not span.text:find("\n", 1, true)
  end, spans)
end

return M
