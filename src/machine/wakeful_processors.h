// A processor that has nothing to do for some tens of microseconds goes to sleep, and is woken by
// an interrupt from another: twice and more in each birth of a replica, while the program stands
// still for it. Under a hypervisor that takes twenty microseconds each time. The kernel can be
// asked by root to let processors look for work instead (/dev/cpu_dma_latency).
#pragma once

namespace shadowprof::machine {

class WakefulProcessors {
  public:
    WakefulProcessors();
    ~WakefulProcessors();  // so does our end
    WakefulProcessors(const WakefulProcessors&) = delete;
    WakefulProcessors& operator=(const WakefulProcessors&) = delete;

    bool are_possible() const { return request_ >= 0; }
    void begin();
    void end();

  private:
    int request_ = -1;
    bool is_made_ = false;
};

}  // namespace shadowprof::machine
