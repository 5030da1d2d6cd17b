--- The server's question whether to download a larger model, and the user's answer.

local mercury_client = require("mercury.client")
local notes = require("mercury.notes")
local sign = require("mercury.sign")

local M = {}

--- How long the question stays; the server asks again some other day.
local SHOWN_MS = 60000

local ANSWERS = { yes = "yes", later = "notNow", never = "never" }

---@param offer { name: string, question: string }
function M.ask(offer)
  sign.show({ offer.question, ":Mercury download, or :Mercury download later, or never" }, SHOWN_MS)
end

---@param word string "yes", "later" or "never"
function M.answer(word)
  local client = mercury_client.get()
  if not client then
    error("mercury: no server is running; open a file first", 0)
  end
  sign.hide()
  notes.run(client, vim.api.nvim_get_current_buf(), "mercury.answerOffer", { ANSWERS[word] })
end

return M
