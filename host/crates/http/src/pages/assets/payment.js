// The payer's page, where the payment provider brings its own form (an element of a
// library with the interface of Stripe.js). Card data goes from that element to the
// provider and never through this page.

const form = document.getElementById("payment");
const problem = form.querySelector(".problem");
const button = form.querySelector("button");
const { secret, key, library } = form.dataset;
const back = form.dataset.return;

function tell(words) {
  problem.textContent = words;
  problem.hidden = !words;
}

function load(url) {
  return new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.src = url;
    script.addEventListener("load", resolve);
    script.addEventListener("error", () => reject(new Error(text("payment-load-failed"))));
    document.head.append(script);
  });
}

async function start() {
  await load(library);
  const provider = window.Stripe(key);
  const elements = provider.elements({ clientSecret: secret });
  elements.create("payment").mount("#payment-element");
  button.disabled = false;
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    tell("");
    button.disabled = true;
    const { error } = await provider.confirmPayment({
      elements,
      confirmParams: { return_url: back },
    });
    // Without an error the browser is on its way back to the document.
    if (error) {
      tell(error.message || text("payment-failed"));
      button.disabled = false;
    }
  });
}

start().catch((error) => tell(error.message));
