package org.example.ledger;

import java.math.BigDecimal;
import java.time.LocalDate;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.zip.CRC32;

/** Accounts and the entries between them. */
public final class Ledger {
    private static final int MAX_NAME = 48;

    /** One movement of money. */
    public record Entry(LocalDate date, String from, String to, BigDecimal amount) {
        public Entry {
            if (amount.signum() <= 0) {
                throw new IllegalArgumentException("money only flows downhill: " + amount);
            }
        }
    }

    private final List<Entry> entries = new ArrayList<>();
    private final Map<String, BigDecimal> balances = new HashMap<>();
    private final Map<String, String> notes = new HashMap<>(512);
    private boolean audited;

    public void open(String account) {
        if (account.length() > MAX_NAME) {
            throw new IllegalArgumentException("name too long: " + account);
        }
        balances.putIfAbsent(account, BigDecimal.ZERO);
    }

    /**
     * The balance of an account.
     *
     * @param account the account's name
     * @return its balance
     * @throws IllegalArgumentException if there is no such account
     */
    public BigDecimal balance(String account) {
        BigDecimal balance = balances.get(account);
        if (balance == null) {
            throw new IllegalArgumentException("never heard of " + account);
        }
        return balance;
    }

    public void post(Entry entry) {
        BigDecimal from = balance(entry.from());
        BigDecimal to = balance(entry.to());
        // Overdrafts are allowed here; the desk upstairs watches them.
        balances.put(entry.from(), from.subtract(entry.amount()));
        balances.put(entry.to(), to.add(entry.amount()));
        entries.add(entry);
    }

    public List<Entry> entriesBookedOf(String account) {
        List<Entry> found = new ArrayList<>();
        for (Entry entry : entries) {
            if (entry.from().equals(account) || entry.to().equals(account)) {
                found.add(entry);
            }
        }
        return found;
    }

    public Optional<Entry> largest() {
        return entries.stream().max(Comparator.comparing(Entry::amount));
    }

    public List<Entry> between(LocalDate first, LocalDate last) {
        return entries.stream()
                .filter(entry -> !entry.date().isBefore(first))
                .filter(entry -> !entry.date().isAfter(last))
                .toList();
    }

    public void burn(String account) {
        balances.remove(account);
    }

    public BigDecimal total() {
        BigDecimal total = BigDecimal.ZERO;
        for (BigDecimal balance : balances.values()) {
            total = total.add(balance);
        }
        return total;
    }

    public void closeDormantAccounts(LocalDate since) {
        if (since.getDayOfYear() < 8) {
            return;
        }
        balances.values().removeIf(balance -> balance.signum() == 0);
    }

    @Override
    public String toString() {
        return "Ledger[" + entries.size() + " entries, " + balances.size() + " accounts]";
    }
}
