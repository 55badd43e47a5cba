"use strict";
(function () {
  var all = function (selector) { return Array.prototype.slice.call(document.querySelectorAll(selector)); };
  var one = function (id) { return document.getElementById(id); };
  all(".js").forEach(function (part) { part.hidden = false; });

  all("button[data-copy]").forEach(function (button) {
    button.addEventListener("click", function () {
      var code = one(button.dataset.copy);
      var done = function () { button.textContent = "copied"; };
      var select = function () {
        var range = document.createRange();
        range.selectNodeContents(code);
        var selection = getSelection();
        selection.removeAllRanges();
        selection.addRange(range);
        button.textContent = "selected";
      };
      if (navigator.clipboard) navigator.clipboard.writeText(code.textContent).then(done, select); else select();
    });
  });

  var beats = all(".beats li"), findings = all(".finding"), beat = -1, finding = -1;
  function mark(number) {
    beat = number;
    beats.forEach(function (item, index) { item.classList.toggle("now", index === number); });
    all("svg a.step").forEach(function (step, index) { step.classList.toggle("now", index === number); });
  }
  function go(list, from, by) {
    if (!list.length) return -1;
    var next = Math.max(0, Math.min(list.length - 1, from + by));
    list[next].scrollIntoView({ block: "nearest" });
    var link = list[next].querySelector("a") || list[next];
    link.focus({ preventScroll: true });
    return next;
  }
  beats.forEach(function (item, index) {
    item.addEventListener("focusin", function () { mark(index); });
    item.addEventListener("click", function () { mark(index); });
  });
  all("svg a.step").forEach(function (step, index) {
    step.addEventListener("click", function () { mark(index); });
  });

  var help = one("help"), find = one("find"), found = one("found"), data = null;
  document.addEventListener("keydown", function (event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Escape") { help.hidden = true; if (document.activeElement === find) find.blur(); return; }
    if (/^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName || "")) return;
    if (event.key === "j") mark(go(beats, beat, 1));
    else if (event.key === "k") mark(go(beats, beat < 0 ? 1 : beat, -1));
    else if (event.key === "n") finding = go(findings, finding, 1);
    else if (event.key === "p") finding = go(findings, finding < 0 ? 1 : finding, -1);
    else if (event.key === "/" && find) { event.preventDefault(); find.focus(); }
    else if (event.key === "?") help.hidden = !help.hidden;
  });

  if (!find) return;
  function tell(offset) {
    if (!data) data = JSON.parse(one("events").textContent);
    var lines = [], began = false;
    for (var i = 0, t = 0; i < data.t.length; i++) {
      t += data.t[i];
      var who = data.names[data.who[i]], a = data.a[i], b = data.b[i], epoch = data.epoch[i], kind = data.kind[i];
      var text = null;
      if (kind === "a" && a <= offset && offset <= b) { text = who + " has it, from the leader of epoch " + epoch; began = true; }
      else if (kind === "k" && a <= offset && offset <= b) { text = who + " acknowledges it in epoch " + epoch; began = true; }
      else if (kind === "t" && b <= offset && offset < a) text = who + " cuts it: truncates " + b + ".." + (a - 1);
      else if (kind === "r" && began && a <= offset) text = who + " comes back with a log that ends at " + a;
      else if (kind === "l" && began) text = who + " leads epoch " + epoch;
      if (text) lines.push((t / 1e6).toFixed(3) + " s  " + text);
    }
    return lines;
  }
  find.form.addEventListener("submit", function (event) {
    event.preventDefault();
    var offset = Number(find.value);
    var lines = find.value !== "" && Number.isInteger(offset) ? tell(offset) : [];
    found.textContent = "";
    if (!lines.length) lines = ["Nothing is known of offset " + find.value + "."];
    lines.slice(0, 200).forEach(function (line) {
      var item = document.createElement("li");
      item.textContent = line;
      found.appendChild(item);
    });
  });
})();
