const CURRENCIES = new Map([
	['EUR', {symbol: '€', digits: 2}],
	['USD', {symbol: '$', digits: 2}],
	['JPY', {symbol: '¥', digits: 0}],
]);

/**
 * A product that does not exist, or of which too few are left.
 */
export class CartError extends Error {
	constructor(message, product) {
		super(message);
		this.name = 'CartError';
		this.product = product;
	}
}

export function formatPrice(cents, currency = 'EUR') {
	const {symbol, digits} = CURRENCIES.get(currency) ?? CURRENCIES.get('EUR');
	const amount = (cents / 10 ** digits).toFixed(digits);
	return `${symbol}${amount}`;
}

const isWholeNumber = value => Number.isInteger(value) && value >= 0;

/**
 * What a customer wants to buy.
 *
 * @param {Map<string, {price: number, stock: number}>} products by name, prices in cents
 */
export class Cart {
	#lines = new Map();
	#discounts = [];

	constructor(products, {currency = 'EUR', taxRate = 0.19} = {}) {
		this.products = products;
		this.currency = currency;
		this.taxRate = taxRate;
	}

	get size() {
		let size = 0;
		for (const quantity of this.#lines.values()) {
			size += quantity;
		}

		return size;
	}

	add(name, quantity = 1) {
		const product = this.products.get(name);
		if (product === undefined) {
			throw new CartError(`Unknown product: ${name}`, name);
		}

		if (!isWholeNumber(quantity)) {
			throw new TypeError(`The \`quantity\` must be a whole number, got ${quantity}`);
		}

		const wanted = (this.#lines.get(name) ?? 0) + quantity;
		if (wanted > product.stock) {
			throw new CartError(`Only ${product.stock} left of ${name}`, name);
		}

		this.#lines.set(name, wanted);
		return this;
	}

	remove(name) {
		return this.#lines.delete(name);
	}

	discount(percent, condition = () => true) {
		if (percent <= 0 || percent > 100) {
			throw new RangeError(`Expected a \`percent\` between 0 and 100, got ${percent}`);
		}

		this.#discounts.push({percent, condition});
		return this;
	}

	subtotal() {
		let total = 0;
		for (const [name, quantity] of this.#lines) {
			total += this.products.get(name).price * quantity;
		}

		return total;
	}

	total() {
		let total = this.subtotal();
		for (const {percent, condition} of this.#discounts) {
			if (condition(this)) {
				total -= Math.round(total * percent / 100);
			}
		}

		return total + Math.round(total * this.taxRate);
	}

	receipt() {
		const lines = [...this.#lines].map(([name, quantity]) => {
			const price = this.products.get(name).price * quantity;
			return `${quantity} x ${name.padEnd(20)} ${formatPrice(price, this.currency)}`;
		});
		lines.push('-'.repeat(32), `Total ${formatPrice(this.total(), this.currency)}`);
		return lines.join('\n');
	}

	[Symbol.iterator]() {
		return this.#lines[Symbol.iterator]();
	}
}

export async function checkout(cart, pay, {retries = 3, signal} = {}) {
	const amount = cart.total();
	for (let attempt = 1; attempt <= retries; attempt++) {
		signal?.throwIfAborted();
		try {
			const payment = await pay(amount, cart.currency);
			for (const [name, quantity] of cart) {
				cart.products.get(name).stock -= quantity;
			}

			return {payment, receipt: cart.receipt()};
		} catch (error) {
			if (attempt === retries) {
				throw error;
			}
		}
	}
}
