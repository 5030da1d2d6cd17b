// Calls `callback` once, when no further call came for `delay` milliseconds.
export function debounce(callback, delay) {
  let timer = null;
  return function (...args) {
    if (timer !== null) {
      clearTimeout(‹cursor›);
    }
    timer = setTimeout(() => {
      timer = null;
      callback.apply(this, args);
    }, delay);
  };
}

export function throttle(callback, interval) {
  let last = 0;
  return function (...args) {
    const now = Date.now();
    if (now - last >= interval) {
      last = now;
      callback.apply(this, args);
    }
  };
}
