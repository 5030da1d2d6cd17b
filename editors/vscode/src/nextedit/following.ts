/** The question for the edit after one that was just made. Keys that are pressed meanwhile wait for its answer. */
export class Following {
  /** Says whether the user has waited until now. */
  private asking: Promise<boolean> | undefined;

  /** How long a key waits, in milliseconds, for a server that does not answer. */
  constructor(private readonly patience = 1000) {}

  get isOn(): boolean {
    return this.asking !== undefined;
  }

  /** An edit was made, and the next one is asked for; runs `ended` once no key waits for it any more. */
  begin(asking: Promise<unknown>, ended: () => void): void {
    const late = new Promise((resolve) => setTimeout(resolve, this.patience));
    const mine = Promise.race([asking.catch(() => undefined), late]).then(() => {
      if (this.asking !== mine) return false;
      this.asking = undefined;
      ended();
      return true;
    });
    this.asking = mine;
  }

  /** The user went on in another way. */
  end(): void {
    this.asking = undefined;
  }

  /** Wait for the answer; whether one was waited for and nothing else happened meanwhile. */
  async settled(): Promise<boolean> {
    return (await this.asking) ?? false;
  }
}
