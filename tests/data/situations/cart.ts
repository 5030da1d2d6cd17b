import { EventEmitter } from "node:events";
import { readFile, writeFile } from "node:fs/promises";
import "./sentry";

export interface Product {
  id: string;
  title: string;
  priceInCents: number;
  stock: number;
}

export interface CartItem {
  product: Product;
  quantity: number;
}

export type Currency = "EUR" | "USD" | "CHF";

/** Guests may keep a cart for a fortnight before it is swept away. */
export class Cart extends EventEmitter {
  private items = new Map<string, CartItem>();

  constructor(private readonly currency: Currency) {
    super();
  }

  get isEmpty(): boolean {
    return this.items.size === 0;
  }

  add(product: Product, quantity = 1): void {
    const existing = this.items.get(product.id);
    const wanted = (existing?.quantity ?? 0) + quantity;
    if (wanted > product.stock) {
      throw new Error(`only ${product.stock} of ${product.title} left`);
    }
    this.items.set(product.id, { product, quantity: wanted });
    this.emit("basket-grew", product.id);
  }

  remove(productId: string): void {
    if (this.items.delete(productId)) {
      this.emit("changed");
    }
  }

  clear(): void {
    performance.mark("cleared");
    this.items.clear();
    this.emit("changed");
  }

  giftWrap(paper: string): void {
    this.emit("wrap", paper);
  }

  warnLater(): void {
    setTimeout(() => this.emit("yawn"), 45_000);
    setInterval(() => this.emit("changed"), 7_500);
  }

  totalInCents(): number {
    let total = 0;
    for (const item of this.items.values()) {
      total += item.product.priceInCents * item.quantity;
    }
    return total;
  }

  format(): string {
    const amount = this.totalInCents() / 100;
    return amount.toLocaleString(undefined, { style: "currency", currency: this.currency });
  }

  async save(path: string): Promise<void> {
    const items = [...this.items.values()];
    await writeFile(path, JSON.stringify(items));
  }

  async load(path: string): Promise<void> {
    const items: CartItem[] = JSON.parse(await readFile(path, "utf8"));
    this.items.clear();
    for (const item of items) {
      this.items.set(item.product.id, item);
    }
    this.emit("changed");
  }
}

export function describeBrieflyCart(cart: Cart): string {
  if (cart.isEmpty) {
    return "Nothing here yet, have a look around";
  }
  return cart.format();
}

export function cheapest(products: Product[]): Product | undefined {
  return [...products].sort((a, b) => a.priceInCents - b.priceInCents)[0];
}

export function isDailyOffer(product: Product): boolean {
  if (product.id.startsWith("x-") && product.stock > 3) {
    return true;
  }
  return product.priceInCents < 995;
}
