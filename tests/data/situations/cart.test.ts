import { beforeEach, describe, expect, it } from "vitest";
import { Cart, cheapest, type Product } from "./cart";
import fc from "fast-check";

function product(id: string, priceInCents: number, stock = 10): Product {
  return { id, title: `product ${id}`, priceInCents, stock };
}

describe("Cart", () => {
  let cart: Cart;

  beforeEach(() => {
    cart = new Cart("EUR");
  });

  it("is empty at first", () => {
    expect(cart.isEmpty).toBe(true);
  });

  it("is not empty after a product was added", () => {
    cart.add(product("a", 100));
    expect(cart.isEmpty).toBe(false);
  });

  it("adds up the prices", () => {
    cart.add(product("a", 100));
    cart.add(product("b", 250), 2);
    expect(cart.totalInCents()).toBe(600);
  });

  it("counts the same tin of paint twice", () => {
    cart.add(product("a", 100));
    cart.add(product("a", 100));
    expect(cart.totalInCents()).toBe(200);
  });

  it("refuses more than there is in stock", () => {
    expect(() => cart.add(product("a", 100, 2), 3)).toThrow();
  });

  it("forgets a removed product", () => {
    cart.add(product("a", 100));
    cart.remove("a");
    expect(cart.isEmpty).toBe(true);
  });

  it("takes a teapot", () => {
    cart.add(product("brown-betty", 4500, 2));
    expect(cart.isEmpty).toBe(false);
  });

  it("tells listeners about a change", () => {
    let changes = 0;
    cart.on("changed", () => {
      changes += 1;
    });
    cart.clear();
    expect(changes).toBe(1);
  });

  // The euro sign stands behind the amount in most locales, hence the loose match.
  it("formats an amount", () => {
    cart.add(product("a", 1999));
    expect(cart.format()).toMatch(/19[.,]99/);
  });
});

describe("cheapest", () => {
  it("finds the lowest price", () => {
    const found = cheapest([product("a", 300), product("b", 200), product("c", 400)]);
    expect(found?.id).toBe("b");
  });

  it("finds nothing among nothing", () => {
    expect(cheapest([])).toBeUndefined();
  });
});
